"""How accuracy, loss and whatever else was recorded went up and down over training, and where it ended."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from waterjar.diagnose.over_seeds import interval_words
from waterjar.diagnose.recorded import Quantity
from waterjar.view import figures
from waterjar.view.numbers import counted, estimate, number
from waterjar.view.report.blocks import Block, Chart, Table
from waterjar.view.report.charts.curves import last_values, panels_over
from waterjar.view.report.charts.theme import as_drawn, escape, label_names
from waterjar.view.report.ends import ends_of, quantities
from waterjar.view.report.model import Model

TITLE = "Learning curves"
ORDER = 30
_OVER = "total_epoch"
_FIRST = ("t2_shortcut_normal", "t2_shortcut_masked", "t1_all", "t2_nonshortcut_normal")
"""Evaluation sets of the laboratory that tell most; a study that lacks them shows its own first ones."""
_MOST = 6
_ARROWS = {"lower": " ↓", "higher": " ↑"}


class _Shown(NamedTuple):
    """A chart: what of it, and how its figure is called."""

    quantity: Quantity
    sets: list[str]

    @property
    def settings(self) -> dict[str, object]:
        """Settings of the figure `learning_curves`."""
        group = {} if self.quantity.group == "performance" else {"group": self.quantity.group}
        return {"variable": self.quantity.variable, **group, **({"eval_sets": self.sets} if self.sets else {})}

    @property
    def word(self) -> str:
        """As a title names it."""
        return self.quantity.variable.replace("_", " ") if self.sets else self.quantity.words

    @property
    def label(self) -> str:
        """The same with its units, and which way is better."""
        units = "" if self.quantity.units in ("1", "") else f" ({self.quantity.units})"
        return f"{self.word}{units}{_ARROWS.get(self.quantity.direction, '')}"

    @property
    def name(self) -> str:
        """Unique in a report."""
        return f"learning_curves_{self.quantity.group}_{self.quantity.variable}"


def blocks(model: Model) -> list[Block]:
    """A chart per quantity, a panel per evaluation set: what was evaluated, then training; and where it ended."""
    about = figures.describe("learning_curves")
    made: list[Block] = []
    for one in _wanted(model):
        frame = model.figure_data("learning_curves", **one.settings)
        if frame.empty:  # some runs lack a set that others have
            continue
        word, first = one.word, not made
        titles = label_names(frame["eval_set"].unique(), 34) | {"": escape(word)}
        left = len(_sets(model, one.quantity)) - len(one.sets)
        more = f" Shown are {len(one.sets)} of {len(one.sets) + left} evaluation sets." if left > 0 and one.sets else ""
        ends = last_values(frame, "eval_set", _OVER).replace("Last values. : ", "Last values. ")
        panels = "one panel per evaluation set" if one.sets else "over training"
        drawn = panels_over(frame, "eval_set", model.keys, over=_OVER, titles=titles, y=one.label)
        shown = as_drawn(about.caption, drawn) if first else f"As above: {word} over epochs."
        made.append(
            Chart(
                name="learning_curves" if first else one.name,
                title=about.title if first else f"{about.title}: {word}",
                panels=drawn,
                frame=frame,
                caption=f"{shown}{more}",
                alt=f"Lines of {word} over epochs, {panels}. {ends}",
                keys=tuple(model.keys.values()),
                figure="learning_curves",
                settings=one.settings,
            )
        )
    return [*made, *_ends(model)]


def _wanted(model: Model) -> list[_Shown]:
    """Accuracy by the finest measure that was recorded, losses and what a study declares itself."""
    found: dict[tuple[str, str], list[Quantity]] = {}
    for one in quantities(model):
        found.setdefault((one.group, one.variable), []).append(one)
    if ("performance", "accuracy") in found:  # macro accuracy tells the same of balanced sets
        found.pop(("performance", "macro_accuracy"), None)
    shown = []
    for several in list(found.values())[:_MOST]:
        sets = [one.eval_set for one in several if one.eval_set]
        shown.append(_Shown(several[0], [name for name in _FIRST if name in sets] or sets[:_MOST]))
    return shown


def _sets(model: Model, quantity: Quantity) -> set[str]:
    recorded = model.recorded(quantity.group).values()
    return {str(name) for one in recorded if "eval_set" in one.coords for name in one["eval_set"].values}


def _ends(model: Model) -> list[Block]:
    """Where training ended, and differences to the baseline of what was evaluated."""
    found = [one for one in ends_of(model) if one.numbers]
    if not found:
        return []
    cells = list(model.names.values())
    rows, numbers = [], []
    for ends in found:
        head = f"{ends.words}{_ARROWS.get(ends.quantity.direction, '')}"
        against = {one.own.cell: one for one in ends.differences}
        texts = []
        for cell in cells:
            one, other = ends.numbers.get(cell), against.get(cell)
            if one is None:
                texts.append("–")
                continue
            text = estimate(one.mean, one.low, one.high, one.n) if one.n else f"–\n{one.why}"
            lacking = f"; {one.why}" if one.n and one.why else ""
            p = "" if other is None or math.isnan(other.p) else f"; p = {number(other.p)}{' *' * other.significant}"
            texts.append(text + lacking + p)
            values = (one.mean, one.low, one.high, one.n, one.interval, one.why, other.p if other else float("nan"))
            numbers.append((ends.group, ends.quantity.variable, ends.quantity.eval_set, cell, *values))
        rows.append((head, *texts))
    columns = [
        "group",
        "variable",
        "eval_set",
        "cell",
        "mean",
        "low",
        "high",
        "n",
        "interval",
        "missing",
        "p_corrected",
    ]
    frame = pd.DataFrame(numbers, columns=columns)
    left, tested = len(list(quantities(model))) - len(found), max(one.tests for one in found)
    level = model.diagnosis.analysis.confidence
    caption = (
        f"Mean over seeds at the last step of each run, with its {interval_words(frame['interval'], level)} and the "
        "number of seeds. ↑ higher is better, ↓ lower."
    )
    if left:
        caption += f" Shown are {len(found)} of {len(found) + left}; waterjar diagnose --only has all."
    if tested:
        base = model.baseline
        caption += (
            f" p: of the difference to the baseline ({base}), seed by seed, corrected over {counted(tested, 'test')}."
        )
    numeric = tuple(range(1, len(cells) + 1))
    return [Table("ends", "Where training ended", ("", *cells), tuple(rows), frame, caption, numeric)]
