"""What figures over training share: how a mean and its band are drawn, and red dashed lines where tasks change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterjar.diagnose.over_seeds import CONFIDENCE, band_words
from waterjar.view.style import counted, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOUNDARY = "#C1272D"
_BOUNDARY_LINE: dict[str, Any] = {"color": BOUNDARY, "linestyle": (0, (4, 3)), "linewidth": 1.0, "alpha": 0.8}
_LIGHT_LINE: dict[str, Any] = {**_BOUNDARY_LINE, "linewidth": 0.7, "alpha": 0.4}
FEW_TASKS = 6
"""The boundaries of more tasks than this are drawn lightly: they would stand before what is shown."""
Floats = NDArray[np.float64]


def draw_curve(ax: Axes, x: NDArray[Any], table: pd.DataFrame, style: Mapping[str, Any], label: str = "") -> None:
    """Draw mean and band of a table; a missing value leaves a gap, a value with no neighbour is a dot."""
    mean, low, high = (table[column].to_numpy(float) for column in ("mean", "low", "high"))
    there = np.isfinite(mean)
    padded = np.concatenate([[False], there, [False]])
    alone = there & ~padded[:-2] & ~padded[2:]
    look = {"label": label, **style}
    if alone.any():
        look |= {"marker": "o", "markevery": np.flatnonzero(alone).tolist(), "markersize": 4}
    ax.plot(x, mean, **look)
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        only = alone & np.isfinite(low)
        ax.vlines(x[only], low[only], high[only], color=style["color"], linewidth=1.0)


_ROOM = 1.5
"""How far beyond its lines, as a multiple of what they span, a panel shows bands."""


def panel_limits(table: pd.DataFrame) -> tuple[float, float] | None:
    """The y limits of a panel whose bands would flatten its lines; None where they do not.

    One wide interval, of few seeds that part for a moment, may be a hundred times as high as all lines together.
    """
    mean, low, high = (table[column].to_numpy(float) for column in ("mean", "low", "high"))
    if not np.isfinite(mean).any() or not np.isfinite(low).any():
        return None
    least, most = float(np.nanmin(mean)), float(np.nanmax(mean))
    span = most - least
    room = _ROOM * span
    bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
    if span <= 1e-9 * max(abs(least), abs(most)) or (bottom >= least - room and top <= most + room):
        return None
    ends = max(bottom, least - room), min(top, most + room)
    margin = 0.05 * (ends[1] - ends[0])
    return ends[0] - margin, ends[1] + margin


CUT = "bands that leave a panel are cut there: their numbers are in the data"


def stops(table: pd.DataFrame, over: str, most: int = 4) -> list[str]:
    """Lines that end before the others of their metric, and why: "naive: effective rank ends at 41 (1 of 3 undefined)".

    `table` has the columns metric, cell, `over`, mean and reason.
    """
    said: dict[tuple[str, float, str], list[str]] = {}
    for (metric, cell), part in table.groupby(["metric", "cell"], sort=False):
        rows = part.sort_values(over, kind="stable")
        known = rows["mean"].notna().to_numpy()
        if not known.any() or known[-1]:
            continue
        last = int(np.flatnonzero(known)[-1])
        reasons = list(dict.fromkeys(text for text in rows["reason"].iloc[last + 1 :] if text))
        place = (str(cell), float(rows[over].iloc[last]), "; ".join(reasons[:2]) or "no snapshot")
        said.setdefault(place, []).append(str(metric).replace("_", " "))
    told = [
        f"{cell}: {', '.join(metrics)} end{'s' if len(metrics) == 1 else ''} at {at:g} ({why})"
        for (cell, at, why), metrics in said.items()
    ]
    more = [f"and {len(told) - most} more lines end early"] if len(told) > most else []
    return [*told[:most], *more]


def band_note(
    repeats: set[int],
    band: str = "interval",
    methods: Iterable[str] = ("t",),
    confidence: float | Iterable[float] = CONFIDENCE,
) -> str | None:
    """What the line and the band are, in short lines; None where there is no band. `methods` made its intervals.

    >>> band_note({3}), band_note({1})
    ('mean and 95 % t interval of 3 repeats', None)
    """
    if not repeats - {0, 1}:
        return None
    return textwrap.fill(f"mean and {band_words(band, methods, confidence)} of {counted(repeats, 'repeat')}", 90)


def task_starts(x: NDArray[Any], tasks: Sequence[str]) -> list[tuple[float, str]]:
    """(where it begins, its name) of every task in turn: at the evaluation at the end of the task before."""
    starts = [i for i in range(len(tasks)) if i == 0 or tasks[i] != tasks[i - 1]]
    return [(float(x[max(0, i - 1)]), tasks[i]) for i in starts]


class TaskMarks(NamedTuple):
    """Where tasks change, and of whom that is told."""

    starts: list[tuple[float, str]]
    width: float
    """Of the axis, in its own unit."""
    whose: str = ""
    """For a legend: the cells that change task there; empty where all do."""
    note: str = ""
    """What the others train."""


def task_marks(cells: Mapping[str, pd.DataFrame], over: str) -> TaskMarks:
    """Where most of the cells with most tasks change task, and which cells do not: they train one alone, or others.

    A table per cell has `train_task` and `over`, a row per step. A cell that has not come to a boundary yet shares it.
    """
    places = {cell: part[over].to_numpy(float) for cell, part in cells.items() if len(part)}
    starts = {cell: task_starts(x, cells[cell]["train_task"].tolist()) for cell, x in places.items()}
    if not starts:
        return TaskMarks([], 1.0)
    every = list(starts.values())
    longest = max(every, key=lambda one: (len(one), every.count(one)))
    x = np.concatenate(list(places.values()))
    marks = TaskMarks(longest, float(np.nanmax(x) - np.nanmin(x)) or 1.0)

    def shares(cell: str) -> bool:
        own = starts[cell]
        due = longest[len(own)][0] if len(own) < len(longest) else np.inf
        return own == longest[: len(own)] and bool(np.nanmax(places[cell]) <= due)

    others = [cell for cell in starts if not shares(cell)]
    if len(longest) < 2 or not others:
        return marks
    alone = {cell: starts[cell][0][1] for cell in others if len(starts[cell]) == 1}
    shown, tasks = labels(starts, most=20), labels(alone.values(), most=14)
    told = [f"{shown[cell]}: {tasks[task]} from the start" for cell, task in alone.items()]
    told += [f"{shown[cell]}: changes elsewhere" for cell in others if cell not in alone]
    share = [shown[cell] for cell in starts if cell not in others]
    few = len(share) <= max(3, len(others))
    whose = f"only of {_some(share)}" if few else f"not of {_some([shown[cell] for cell in others])}"
    return marks._replace(whose=f"task change, {whose}", note=_some(told, "; "))


def _some(names: Sequence[str], between: str = ", ", most: int = 4) -> str:
    rest = len(names) - most
    return between.join([*names[:most], *([f"{rest} more"] if rest > 0 else [])])


def boundary_line(tasks: int, *, light: bool = False) -> dict[str, Any]:
    """How the boundary between tasks is drawn: thin and pale where there are many of them."""
    return _LIGHT_LINE if light or tasks > FEW_TASKS else _BOUNDARY_LINE


def boundary_entry(marks: TaskMarks, *, unnamed: bool = False) -> dict[str, Any]:
    """label -> handle for a legend, where the boundary is not that of all cells, or stands `unnamed` in the panels."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    label = marks.whose or ("a new task begins" if unnamed and len(marks.starts) > 1 else "")
    return {label: Line2D([], [], **boundary_line(len(marks.starts), light=unnamed))} if label else {}


def mark_tasks(ax: Axes, marks: TaskMarks, *, names: bool = True, light: bool = False) -> None:
    """A red dashed line where a task ends, and the name of each task above; names that would overlap are left out.

    The lines of many tasks are thin and pale, and so are all where `light`.

    Where some cells do not change task there, a name over a stretch would speak of them too: `first | second` stands
    on the line instead, in its colour.
    """
    if len(marks.starts) < 2:
        return
    shown = labels([name for _, name in marks.starts], most=18 if not marks.whose else 12)
    free = -np.inf
    look: dict[str, Any]
    for place, (begin, name) in enumerate(marks.starts):
        if place:
            ax.axvline(begin, zorder=1, **boundary_line(len(marks.starts), light=light))
        if not marks.whose:
            text, left, look = f" {shown[name]}", begin, {"ha": "left", "color": "#555555"}
        else:
            text = f"{shown[marks.starts[place - 1][1]]} | {shown[name]}"
            left, look = begin - marks.width * 0.008 * len(text), {"ha": "center", "color": BOUNDARY}
        if names and left >= free and (place or not marks.whose):
            ax.annotate(
                text, (begin, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=7.5,
                annotation_clip=True, **look,
            )  # fmt: skip
            free = left + marks.width * 0.016 * len(text)


def say(ax: Axes, text: str) -> None:
    """Say in the middle of an empty panel why it is empty."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
    words = "\n".join(textwrap.wrap(text, 40))
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color="#666666", fontsize=8, bbox=box)
