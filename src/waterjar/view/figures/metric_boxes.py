"""Metrics of algorithms side by side: one panel per metric, a box over repeats per algorithm, every repeat a point."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.over_seeds import interval_words, over_seeds
from waterjar.diagnose.study import Diagnosis
from waterjar.view.curves import say
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.figures._rows import name_rows
from waterjar.view.figures._series import axis_title, family_needs, main_metrics, per_repeat
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in
from waterjar.view.style import canvas, counted, foot_note, house_style, marker_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Metrics by algorithm"
CAPTION = (
    "One panel per metric, a box per algorithm: quartiles and median over repeats, whiskers to the farthest one. Small "
    "markers are repeats, thin lines join those of one seed; a large marker with a bar is the mean with its interval."
)
NEEDS = ("continual|geometry|plasticity|rigidity",)
BOX_FROM = 4
"""Repeats: quartiles of fewer are no more than the points themselves."""
_THICK = 0.34
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}


def data(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    snapshots: str = "mean",
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per metric, cell and seed: metric, cell, seed, value, missing (why), left_out, how, and of the cell n,
    n_missing, mean, low, high, interval (how they were made), std (ddof 1), smallest, q1, median, q3, largest.

    One number per repeat comes first: the mean over its tasks, or over its `snapshots` ("final": at the last one, as
    in tables); `how` says which, `left_out` how many snapshots were undefined. Then over repeats, at the level
    `confidence`, by default that of each metric's family. `settings` go to the families of the metrics.
    """
    diagnosis = diagnosis_of(source, family_needs(metrics, NEEDS), settings)
    names = list(dict.fromkeys(map(diagnosis.name_of, metrics or main_metrics(diagnosis))))
    table = per_repeat(diagnosis, names, snapshots=snapshots)
    bounding = {name: diagnosis.declared(name).bounding for name in names}
    levels = {name: _level(diagnosis, name) if confidence is None else confidence for name in names}
    over = [
        {
            "metric": metric,
            "cell": cell,
            **_over_repeats(part["value"].to_numpy(float), levels[metric], bounding[metric]),
        }
        for (metric, cell), part in table.groupby(["metric", "cell"], sort=False)
    ]
    found = table.merge(pd.DataFrame(over), on=["metric", "cell"], how="left")
    found.attrs = {"titles": {name: axis_title(diagnosis, name) for name in names}, "confidence": list(levels.values())}
    return found


def _level(diagnosis: Diagnosis, name: str) -> float:
    return diagnosis.confidence(diagnosis.declared(name).family)


def _over_repeats(values: Any, confidence: float, bounding: dict[str, Any]) -> dict[str, Any]:
    found = over_seeds(values, confidence=confidence, **bounding)
    kept = values[~np.isnan(values)]
    five = np.quantile(kept, [0.0, 0.25, 0.5, 0.75, 1.0]) if len(kept) else np.full(5, np.nan)
    return {
        "n": found.n, "n_missing": found.seeds - found.n,
        "mean": found.mean, "low": found.low, "high": found.high, "interval": found.interval, "std": found.std,
        **dict(zip(("smallest", "q1", "median", "q3", "largest"), five.tolist(), strict=True)),
    }  # fmt: skip


def metric_boxes(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    snapshots: str = "mean",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw a panel per metric with a box per algorithm; `settings` go to the families of the metrics."""
    with house_style():
        table = data(source, metrics=metrics, snapshots=snapshots, confidence=confidence, **settings)
        names, cells = list(table.attrs["titles"]), list(dict.fromkeys(table["cell"]))
        of_all = marker_styles(cell_order(source, cells))
        styles = {cell: of_all[cell] for cell in cells}
        height = 0.42 * max(len(cells), 2) + 0.75
        rows, columns, size = panel_grid(len(names), 2.75, height, most=2 if len(names) in (2, 4) else 3)
        figure = canvas(figure, (size[0] + 0.6, size[1] + 0.3))
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for ax, name in zip(panels.ravel(), names, strict=False):
            _panel(ax, table[table["metric"] == name], styles)
            ax.set_title(table.attrs["titles"][name], fontsize=9)
        for ax in panels.ravel()[len(names) :]:
            ax.set_visible(False)
        for row in panels:
            name_rows(row[0], cells)
        foot_note(figure, _note(table))
        return stamp(figure, roots_in(source))


def _panel(ax: Axes, part: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    ax.grid(False, axis="y")
    ax.locator_params(axis="x", nbins=5)
    how = next(iter(part["how"]), "")
    ax.set_xlabel(how, fontsize=7.5, color="#555555")
    rows = {cell: row for row, cell in enumerate(styles)}
    _pairs(ax, part, rows)
    for name, of_cell in part.groupby("cell", sort=False):
        cell, first = str(name), of_cell.iloc[0]
        row, style = rows[cell], styles[cell]
        if first["n"] >= BOX_FROM:
            five = {"q1": first["q1"], "med": first["median"], "q3": first["q3"]}
            ends = {"whislo": first["smallest"], "whishi": first["largest"], "fliers": []}
            ax.bxp(
                [{**five, **ends}], positions=[row], widths=_THICK, orientation="horizontal", patch_artist=True,
                manage_ticks=False, showfliers=False, zorder=2,
                boxprops={"facecolor": (*_rgb(style["color"]), 0.18), "edgecolor": style["color"], "linewidth": 1.0},
                medianprops={"color": style["color"], "linewidth": 2.0},
                whiskerprops={"color": style["color"]}, capprops={"color": style["color"]},
            )  # fmt: skip
        ax.scatter(
            of_cell["value"], np.full(len(of_cell), float(row)), s=12, marker=style["marker"], zorder=4,
            facecolors=style["color"], edgecolors="white", linewidths=0.4, gid="repeats",
        )  # fmt: skip
        beside = row + 0.3
        if np.isfinite(first["low"]):
            ax.plot([first["low"], first["high"]], [beside, beside], color=style["color"], linewidth=1.6, zorder=5)
        if np.isfinite(first["mean"]):
            ax.plot(
                [first["mean"]], [beside], linestyle="none", markersize=5, markeredgecolor="black",
                markeredgewidth=0.6, zorder=6, **style,
            )  # fmt: skip
        if first["n_missing"]:
            why = of_cell.loc[of_cell["missing"] != "", "missing"].value_counts()
            text = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in why.items())
            ax.annotate(
                text, (1.0, row - 0.3), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=6.5,
                color="#555555", gid="missing", bbox=_BEHIND,
            )  # fmt: skip
    if not part["value"].notna().any():
        say(ax, "no value")
        ax.set_xticks([])


def _pairs(ax: Axes, part: pd.DataFrame, rows: dict[str, int]) -> None:
    """A thin line between the repeats of one seed in neighbouring rows; a seed that one of them lacks has none."""
    values = part.pivot(index="seed", columns="cell", values="value")
    for above, below in itertools.pairwise(rows):
        if above not in values or below not in values:
            continue
        both = values[[above, below]].dropna()
        for pair in both.to_numpy():
            ax.plot(pair, [rows[above], rows[below]], color="#9a9a9a", linewidth=0.5, alpha=0.7, zorder=1, gid="pair")


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb  # noqa: PLC0415 - an extra

    return to_rgb(colour)


def _note(table: pd.DataFrame) -> str:
    made = interval_words(table["interval"], table.attrs["confidence"])
    said = [f"mean and {made}, n = {counted(table['n'], 'repeat')}"]
    if (table["n"] >= BOX_FROM).any():
        said.append("box: quartiles and median, whiskers: range")
    if table.groupby("metric")["seed"].apply(lambda seeds: seeds.duplicated().any()).any():
        said.append("thin lines: the same seed")
    left_out = int(table["left_out"].sum())
    if left_out:
        said.append(f"{left_out} snapshots at which a metric is undefined are left out of its mean")
    return "; ".join(said)
