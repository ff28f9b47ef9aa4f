"""Metrics as training goes on, algorithms side by side: one panel per metric, a line and a band per algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.over_seeds import mean_table
from waterjar.diagnose.result import UNDEFINED
from waterjar.diagnose.training_order import is_further_visit
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS
from waterjar.view.curves import TaskMarks, band_note, boundary_entry, draw_curve, mark_tasks, say, task_marks
from waterjar.view.figures._heatmap import panel_grid
from waterjar.view.figures._series import EPOCH, TASK, axis_title, course, family_needs, flattened, main_metrics
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in
from waterjar.view.style import canvas, house_style, labels, legend_outside, line_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Metrics over training"
CAPTION = (
    "One panel per metric, a line per algorithm: the mean over repeats with its interval. Over epochs where a metric "
    "has a value at every snapshot or evaluation (thin lines: the task changes), over tasks where it has one per "
    "task. Averages over tasks are over those trained so far."
)
NEEDS = ("continual|geometry|plasticity",)
MANY_STEPS = 100
_AXES = {EPOCH: "total epoch", TASK: "task, in the order of training"}


def data(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    layer: str | None = None,
    band: str = "interval",
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per metric, cell and place: metric, cell, layer, axis, place, train_task, x, mean, low, high, n, reason,
    interval (how low and high were made).

    `axis` says what x is: total_epoch, or task, counted from 1. `metrics` are by default those that matter of what was
    measured; `layer` is the last one by default. Intervals are at the level `confidence`, by default that of each
    metric's family. `settings` go to the families of the metrics.

    Over epochs there is no mean where a repeat lacks a value. Over tasks the mean is of the repeats in which the metric
    is defined (a ratio of two values at chance is not), `n` counts them and `reason` the others; what is missing
    otherwise leaves no mean there either.
    """
    diagnosis = diagnosis_of(source, family_needs(metrics, NEEDS), settings)
    names = list(dict.fromkeys(map(diagnosis.name_of, metrics or main_metrics(diagnosis, with_course=True))))
    parts, levels = [], []
    for name in names:
        rows = course(diagnosis, name, layer=layer)
        within = diagnosis.declared(name).own_range
        levels.append(diagnosis.confidence(diagnosis.declared(name).family) if confidence is None else confidence)
        parts += [_over_repeats(part, band, within, levels[-1]) for _, part in rows.groupby("cell", sort=False)]
    if not parts:
        raise WaterjarError(f"{', '.join(names)}: no cell has recorded anything of it")
    found = pd.concat(parts, ignore_index=True)
    found.attrs = {
        "titles": {name: axis_title(diagnosis, name) for name in names},
        "asides": {name: flattened(diagnosis, name, layer) for name in names},
        "confidence": levels,
    }
    return found


def _over_repeats(part: pd.DataFrame, band: str, within: tuple[float, float], confidence: float) -> pd.DataFrame:
    first = part.drop_duplicates("place")
    seeds = part["seed"].nunique()
    codes = part["reason"].map({word: code for code, word in enumerate(REASONS)}).to_numpy(np.uint8)
    values = part["value"].to_numpy(float).reshape(seeds, -1)
    codes = codes.reshape(seeds, -1)
    about = first[["metric", "cell", "layer", "axis", "place", "train_task", "x"]].reset_index(drop=True)
    how: dict[str, Any] = {"band": band, "within": within, "confidence": confidence}
    found = mean_table(values, codes, **how)
    if about["axis"].iloc[0] == TASK:
        there = ~np.isnan(values)
        some = there.any(axis=0) & ~there.all(axis=0) & (there | (codes == UNDEFINED)).all(axis=0)
        for place in np.flatnonzero(some):
            of_some = mean_table(values[there[:, place]][:, [place]], **how)
            for column in ("mean", "low", "high", "interval"):
                found.loc[place, column] = of_some.loc[0, column]
    return about.join(found)


def metric_traces(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    layer: str | None = None,
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw metrics over training, a panel each; `band` is interval, std or range, `settings` go to the families."""
    with house_style():
        table = data(source, metrics=metrics, layer=layer, band=band, confidence=confidence, **settings)
        names = list(table.attrs["titles"])
        cells = list(dict.fromkeys(table["cell"]))
        of_all = line_styles(cell_order(source, cells))
        rows, columns, size = panel_grid(len(names), 3.3, 2.05, most=2 if len(names) in (2, 4) else 3)
        figure = canvas(figure, (size[0] - 0.6, size[1] + 1.1))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        shown_as = labels(cells, most=44)
        marks = TaskMarks([], 1.0)
        for ax, name in zip(panels, names, strict=False):
            part = table[table["metric"] == name]
            ax.set_title(table.attrs["titles"][name], fontsize=9)
            aside = labels([table.attrs["asides"][name]], most=34)[table.attrs["asides"][name]]
            ax.set_title(aside, loc="right", fontsize=7, fontweight="normal", color="#555555")
            found = _panel(ax, part, {cell: {**of_all[cell], "label": shown_as[cell]} for cell in cells})
            marks = found if len(found.starts) > len(marks.starts) else marks
        _same_reach(list(panels[: len(names)]), table, names)
        for ax in panels[len(names) :]:
            ax.set_visible(False)
        handles = {label: line for ax in panels for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        named = {shown_as[cell]: handles[shown_as[cell]] for cell in cells if shown_as[cell] in handles}
        notes = [
            band_note(set(table.loc[table["reason"] == "", "n"]), band, table["interval"], table.attrs["confidence"]),
            *_missing(table),
            marks.note,
        ]
        note = "\n".join(text for text in notes if text)
        if named or note:
            legend_outside(figure, {**named, **boundary_entry(marks, unnamed=True)}, note or None)
        return stamp(figure, roots_in(source))


def _panel(ax: Axes, part: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> TaskMarks:
    """The lines of one metric; what is known of its task boundaries is given back."""
    axis = part["axis"].iloc[0] if len(part) else EPOCH
    again = axis == TASK and any(map(is_further_visit, part["train_task"]))
    ax.set_xlabel("task, further visits behind" if again else _AXES[axis])
    for cell, of_cell in part.groupby("cell", sort=False):
        if of_cell["mean"].notna().any():
            style = dict(styles[str(cell)]) | ({"linewidth": 1.1} if len(of_cell) > MANY_STEPS else {})
            draw_curve(ax, of_cell["x"].to_numpy(float), of_cell, style, style.pop("label"))
            fewer = of_cell[of_cell["mean"].notna() & (of_cell["reason"] != "")]
            ax.plot(
                fewer["x"], fewer["mean"], linestyle="none", marker="o", markersize=5, markerfacecolor="white",
                markeredgecolor=style["color"], zorder=3, gid="fewer",
            )  # fmt: skip
    if not part["mean"].notna().any():
        why = list(dict.fromkeys(part.loc[part["reason"] != "", "reason"]))
        say(ax, "; ".join(why[:3]) or "nothing was recorded")
        ax.set_yticks([])
        return TaskMarks([], 1.0)
    if axis == TASK:
        ax.locator_params(axis="x", integer=True)
        return TaskMarks([], 1.0)
    marks = task_marks({str(cell): of_cell for cell, of_cell in part.groupby("cell", sort=False)}, "x")
    mark_tasks(ax, marks, names=False, light=True)
    return marks


def _missing(table: pd.DataFrame) -> list[str]:
    """What a reader must know of values that are not there."""
    there = table["mean"].notna()
    said = []
    if (there & (table["reason"] != "")).any():
        fewest = int(table.loc[there, "n"].min())
        said.append(f"open circles: undefined in some repeats, and left out; {fewest} or more remain")
    if (~there & (table["n"] > 0)).any():
        said.append("gaps: some repeat has no value there")
    return said


def _same_reach(panels: Sequence[Axes], table: pd.DataFrame, names: Sequence[str]) -> None:
    """The same epochs, and the same tasks, in all panels."""
    for axis in (EPOCH, TASK):
        x = table.loc[table["axis"] == axis, "x"].to_numpy(float)
        if len(x) and x.min() < x.max():
            room = 0.04 * (x.max() - x.min())
            of_axis = set(table.loc[table["axis"] == axis, "metric"])
            for ax, name in zip(panels, names, strict=True):
                if name in of_axis:
                    ax.set_xlim(x.min() - room, x.max() + room)
