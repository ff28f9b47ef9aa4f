"""Accuracy on every task after training on every task: what is kept, what is lost, what is there before its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from waterjar.diagnose.continual.so_far import ends_of_tasks
from waterjar.diagnose.over_seeds import band_words, mean_table, recorded_range
from waterjar.view.figures._heatmap import colour_bar, hatch, panel_grid, write_in
from waterjar.view.results import Source, cell_labels, level_of, roots_in, settings_used, study_of
from waterjar.view.style import canvas, counted, foot_note, house_style, labels, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Task matrix"
CAPTION = (
    "Accuracy on each task (rows) at the end of training on each task (columns), mean over repeats; hatched: no "
    "value. Along a row, a drop right of the diagonal is forgetting, and left of it is what earlier tasks already "
    "gave. A task that is trained again has a column for every visit."
)
NEEDS = ()
SPREAD_UP_TO, NUMBERS_UP_TO = 6, 16
"""Tasks up to which squares have room for a number and its spread, or for a number."""
_LETTER = 0.068
"""Inches that a letter of a tick takes."""


def data(
    source: Source,
    *,
    variable: str | None = None,
    eval_sets: Sequence[str] | None = None,
    band: str = "interval",
    confidence: float | None = None,
) -> pd.DataFrame:
    """One row per cell, train task and eval task: cell, train_task, eval_task, eval_set, mean, low, high, n, reason,
    interval.

    `variable` and `eval_sets` are those of the continual family where they are not given: as it was measured, as the
    study declares them, or accuracy, on one set per task. Joint training has one train task, "joint"; a task that
    is trained again is one for every visit ("x (2nd time)"). So is `confidence`, the level of intervals.
    """
    level = level_of(source, "continual") if confidence is None else confidence
    study = study_of(source, "task_matrix shows recorded accuracies")
    used = settings_used(source, "continual")
    given = {"variable": variable or used["variable"], "eval_sets": eval_sets or used["eval_sets"]}
    names = cell_labels(study)
    parts, within = [], recorded_range(str(given["variable"]))
    for cell, found in ends_of_tasks(study, given):
        for i, trained in enumerate(found.train_tasks):
            about = {"cell": names[cell], "train_task": trained, "eval_task": found.eval_tasks}
            means = mean_table(found.values[:, i], found.codes[:, i], band=band, within=within, confidence=level)
            parts.append(pd.DataFrame({**about, "eval_set": found.eval_sets}).join(means))
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {"variable": given["variable"], "confidence": level}
    return table


def task_matrix(
    source: Source,
    *,
    variable: str | None = None,
    eval_sets: Sequence[str] | None = None,
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw accuracy by eval task and train task, one panel per cell, all in one colour scale from 0 to 1."""
    with house_style():
        table = data(source, variable=variable, eval_sets=eval_sets, band=band, confidence=confidence)
        cells = list(dict.fromkeys(table["cell"]))
        tasks = max(table["eval_task"].nunique(), table["train_task"].nunique())
        named = _task_names(table, tasks)
        side = max(1.2, min(0.48 * tasks, 6.0))
        width = max(side + named.beside, 2.2)
        letters = int(width / 0.1)
        titles = labels(cells, most=3 * letters - 6, width=letters)
        lines = 1 + max((title.count("\n") for title in titles.values()), default=0)
        rows, columns, size = panel_grid(len(cells), width + 0.5, side + named.below + 0.5 + 0.17 * lines)
        figure = canvas(figure, size)
        panels = figure.subplots(rows, columns, squeeze=False)
        picture: Any = None
        for ax, cell in zip(panels.ravel(), cells, strict=False):
            picture = _panel(ax, table[table["cell"] == cell], tasks, named)
            ax.set_title(titles[cell])
        for ax in panels.ravel()[len(cells) :]:
            ax.set_visible(False)
        shown = table.attrs["variable"].replace("_", " ")
        colour_bar(figure, picture, panels, f"{shown} ↑")
        counts = {int(n) for n in table.loc[table["mean"].notna(), "n"]}
        note = f"mean of {counted(counts, 'repeat')}" if counts else "no value"
        if counts and max(counts) > 1 and tasks <= SPREAD_UP_TO:
            words = band_words(band, table["interval"], table.attrs["confidence"])
            note += f", ± half the width of the {words}" if band == "interval" else f", ± half the {words}"
        foot_note(figure, note)
        return stamp(figure, roots_in(source))


class _TaskNames(NamedTuple):
    """Names of tasks as ticks have them, and the room that they take in inches."""

    shown: dict[str, str]
    turned: bool
    beside: float
    below: float


def _task_names(table: pd.DataFrame, tasks: int) -> _TaskNames:
    """Names in lines of a few letters; those below are turned where they would meet."""
    trained, evaluated = (list(dict.fromkeys(table[f"{kind}_task"])) for kind in ("train", "eval"))
    shown = labels([*trained, *evaluated], most=24, width=13)

    def longest(names: list[str]) -> int:
        return max((len(line) for name in names for line in shown[name].split("\n")), default=1)

    turned = longest(trained) > 6 or tasks > 6
    lines = 1 + max(shown[name].count("\n") for name in trained)
    below = _LETTER * longest(trained) if turned else 2 * _LETTER * lines
    return _TaskNames(shown, turned, _LETTER * longest(evaluated), below)


def _panel(ax: Axes, part: pd.DataFrame, tasks: int, named: _TaskNames) -> Any:
    trained, evaluated = (list(dict.fromkeys(part[f"{kind}_task"])) for kind in ("train", "eval"))
    grid = {
        column: part.pivot(index="eval_task", columns="train_task", values=column)
        .reindex(index=evaluated, columns=trained)
        .to_numpy(float)
        for column in ("mean", "low", "high")
    }
    mean = grid["mean"]
    picture = ax.imshow(mean, cmap="cividis", vmin=0.0, vmax=1.0, interpolation="nearest")
    hatch(ax, np.isnan(mean))
    half = (grid["high"] - grid["low"]) / 2
    texts = np.full(mean.shape, "", object)
    for place in zip(*np.nonzero(np.isfinite(mean)), strict=True):
        spread = f"\n± {half[place]:.2f}" if np.isfinite(half[place]) and tasks <= SPREAD_UP_TO else ""
        texts[place] = f"{mean[place]:.2f}{spread}"
    if tasks <= NUMBERS_UP_TO:
        write_in(ax, picture, texts, 8.0 if tasks <= SPREAD_UP_TO else 6.0 if tasks <= 12 else 5.5)
    ax.set_anchor("W")  # of one column, it stands where the others begin
    ax.grid(False)
    step = -(-tasks // 12)
    turned = 90 if named.turned else 0
    ax.set_xticks(range(0, len(trained), step), [named.shown[name] for name in trained[::step]], rotation=turned)
    ax.set_yticks(range(0, len(evaluated), step), [named.shown[name] for name in evaluated[::step]])
    ax.set_xlabel("after training on")
    ax.set_ylabel("accuracy on")
    return picture
