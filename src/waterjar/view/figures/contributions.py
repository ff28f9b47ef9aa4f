"""What each stream contributes: accuracy lost without it, its Shapley value, and how pairs of streams interact."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.collective.coalitions import EXACT
from waterjar.diagnose.collective.inputs import ABSENCES
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.schema import MEANINGS
from waterjar.view.curves import say
from waterjar.view.figures._collective import (
    ESTIMATE,
    at_places,
    bounds_note,
    estimates,
    last_places,
    measured,
    shown_name,
)
from waterjar.view.figures._heatmap import hatch, write_in
from waterjar.view.results import Source, by_cell, roots_in
from waterjar.view.style import COLOURS, canvas, foot_note, house_style, labels, legend_outside, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Contributions of streams"
CAPTION = (
    "Bars: accuracy lost without each stream (ablation), and its Shapley value, which shares out the accuracy above "
    "that without any stream. Streams that can stand in for each other lose nothing singly. Squares: interactions "
    "of pairs: above 0 two bring more together than apart, below 0 they bring the same."
)
NEEDS = ("collective",)
BARS = {"ablation": "lost without it (ablation)", "shapley_accuracy": "Shapley value"}
PAIRS = "interaction"
_NUMBERED = EXACT
"""Streams up to which the squares of interactions have numbers."""
_WORDS = {
    "removed": "absent streams are removed",
    "zeroed": "outputs of absent streams are zero",
    "resampled": "outputs of absent streams are those of other samples",
}


def data(source: Source, *, absence: str | None = None, **settings: Any) -> pd.DataFrame:
    """One row per metric, cell and stream, or pair of streams: metric, cell, absence, stream, other_stream, mean, low,
    high, n, reason, interval, bounds, confidence.

    In accuracy, at the end of training. `absence` is how streams are absent: `removed`, `zeroed` or `resampled`; the
    first of these that a learner has by default. Bounds are over seeds, of one seed over samples. `settings` go to
    `collective.measure`.
    """
    if absence is not None and absence not in ABSENCES:
        raise unknown_name("absence", absence, ABSENCES)
    result = measured(source, "collective", settings)
    parts = [part.assign(cell=cell) for cell, one in by_cell(result) for part in _of_cell(one, absence)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if not len(table):
        raise WaterjarError("no stream was recorded: there is nothing to contribute")
    if not table["mean"].notna().any():
        raise WaterjarError(
            "no contribution of a stream is known: it takes coalitions (streams/coalition_correct), or streams whose "
            "outputs make those of the collective by a rule (rule=mean_probability, mean_logit or vote)"
        )
    return table[["metric", "cell", "absence", "stream", "other_stream", *ESTIMATE]]


def _of_cell(one: xr.Dataset, absence: str | None) -> list[pd.DataFrame]:
    places = last_places(one)
    known = at_places(one, "ablation", places, "absence", "stream")[0]
    first = next((i for i in range(len(ABSENCES)) if known.size and np.isfinite(known[:, i]).any()), 0)
    how = ABSENCES[first] if absence is None else absence
    one = one.sel(absence=how)
    names = [str(name) for name in one["stream"].values]
    own = _own(one, places)
    parts = []
    for metric in BARS:
        bars = estimates(one, metric, places, "stream").assign(metric=metric, stream=names, other_stream="")
        parts.append(bars.iloc[own])
    pairs = estimates(one, PAIRS, places, "stream", "other_stream").assign(metric=PAIRS)
    pairs["stream"], pairs["other_stream"] = np.repeat(names, len(names)), np.tile(names, len(names))
    i, j = np.divmod(np.arange(len(pairs)), max(1, len(names)))
    parts.append(pairs[np.isin(i, own) & np.isin(j, own) & (i != j)])
    return [part.assign(absence=how) for part in parts if len(part)]


def _own(one: xr.Dataset, places: Any) -> list[int]:
    """Positions of the streams that this cell has: another one may have others."""
    found = np.isfinite(at_places(one, "individual_accuracy", places, "stream")[0])
    found = np.concatenate([found, np.isfinite(at_places(one, "ablation", places, "stream")[0])])
    return [int(i) for i in np.flatnonzero(found.any(0))]


def contributions(
    source: Source, *, absence: str | None = None, figure: Figure | None = None, **settings: Any
) -> Figure:
    """Draw contributions of streams with intervals, and interactions of pairs, a row per learner.

    `absence` is `removed`, `zeroed` or `resampled`. `settings` go to `collective.measure`.
    """
    with house_style():
        table = data(source, absence=absence, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        streams = [
            table[(table["cell"] == cell) & (table["metric"] == "ablation")]["stream"].nunique() for cell in cells
        ]
        heights = [max(2.1, 0.8 + (0.4 if n <= 12 else 0.2) * n) for n in streams]
        figure = canvas(figure, (8.6, sum(heights) + 0.9))
        panels = figure.subplots(
            len(cells), 2, squeeze=False, gridspec_kw={"height_ratios": heights, "width_ratios": [1.5, 1]}
        )
        titles = labels(map(shown_name, cells), most=40)
        handles: dict[str, Any] = {}
        pairs = table[table["metric"] == PAIRS]
        reach = float(np.nanmax(np.abs(pairs["mean"]))) if pairs["mean"].notna().any() else 1.0
        for (left, right), cell in zip(panels, cells, strict=True):
            part = table[table["cell"] == cell]
            left.set_title(titles[shown_name(cell)])
            handles |= _bars(left, part[part["metric"] != PAIRS])
            right.set_title("interactions of pairs", fontsize=9)
            _square(figure, right, part[part["metric"] == PAIRS], reach or 1.0)
        legend_outside(figure, handles, None, where="upper")
        ways = "; ".join(_WORDS[how] for how in dict.fromkeys(table.loc[table["mean"].notna(), "absence"]))
        notes = [bounds_note(table, float(table["confidence"].iloc[0])), ways]
        foot_note(figure, "\n".join(note for note in notes if note))
        return stamp(figure, roots_in(source))


def _bars(ax: Axes, part: pd.DataFrame) -> dict[str, Any]:
    names = list(dict.fromkeys(part["stream"]))
    if not part["mean"].notna().any():
        say(ax, _why(part))
        ax.set_xticks([])
        ax.set_yticks([])
        return {}
    handles: dict[str, Any] = {}
    height = 0.8 / len(BARS)
    for shift, (metric, words) in enumerate(BARS.items()):
        rows = part[part["metric"] == metric].set_index("stream").reindex(names)
        place = np.arange(len(names)) - 0.4 + height * (shift + 0.5)
        look: dict[str, Any] = {
            "color": COLOURS[(0, 5)[shift]],
            "hatch": ("", "///")[shift],
            "edgecolor": "white",
            "linewidth": 0.0,
        }
        handles[words] = ax.barh(place, rows["mean"], height * 0.94, **look)
        there = rows["low"].notna().to_numpy()
        ax.hlines(place[there], rows["low"][there], rows["high"][there], color="black", linewidth=1.1)
    shown = labels(names, most=22)
    step = 1 if len(names) <= 48 else 2
    ax.set_yticks(
        range(0, len(names), step), [shown[name] for name in names[::step]], fontsize=8 if len(names) <= 16 else 6
    )
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.axvline(0, color="black", linewidth=0.9)
    ax.grid(False, axis="y")
    ax.set_xlabel("accuracy ↑")
    return handles


def _why(part: pd.DataFrame) -> str:
    """Why there are no bars, in short lines."""
    found = [text.rpartition(" ")[2] for text in part["reason"] if text]
    reason = found[0] if found else "not_recorded"
    if reason == "not_recorded":
        return "coalitions of streams were not recorded,\nand no rule makes the collective\nof its streams' outputs"
    return "\n".join(textwrap.wrap(MEANINGS.get(reason, reason), 40))


def _square(figure: Figure, ax: Axes, part: pd.DataFrame, reach: float) -> None:
    ax.grid(False)
    names = list(dict.fromkeys(part["stream"]))
    if len(names) < 2 or not part["mean"].notna().any():
        many = f"more than {EXACT} streams: pairs are not looked at" if len(names) > EXACT else "no value"
        say(ax, "one stream: no pair" if not len(part) else many)
        ax.set_xticks([])
        ax.set_yticks([])
        return
    square = part.pivot(index="stream", columns="other_stream", values="mean").reindex(index=names, columns=names)
    values = square.to_numpy(float)
    picture = ax.imshow(values, cmap="PuOr", vmin=-reach, vmax=reach, interpolation="nearest")
    itself = np.eye(len(names), dtype=bool)
    hatch(ax, np.isnan(values) & ~itself)
    shown = labels(names, most=12)
    if len(names) <= _NUMBERED:
        texts = np.where(np.isnan(values), "", np.char.mod("%.2f", np.nan_to_num(values)))
        write_in(ax, picture, np.char.replace(texts, "-", "−"), size=7.0)
    step = max(1, -(-len(names) // 14))
    size = 7.5 if len(names) <= _NUMBERED else 6
    ax.set_xticks(range(0, len(names), step), [shown[name] for name in names[::step]], rotation=90, fontsize=size)
    ax.set_yticks(range(0, len(names), step), [shown[name] for name in names[::step]], fontsize=size)
    figure.colorbar(picture, ax=ax, shrink=0.75, label="accuracy")
