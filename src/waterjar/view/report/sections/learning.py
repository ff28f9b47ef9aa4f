"""How accuracy went up and down over training."""

from __future__ import annotations

from waterjar.view import figures
from waterjar.view.numbers import shorten
from waterjar.view.report.blocks import Block, Chart
from waterjar.view.report.charts.curves import last_values, panels_over
from waterjar.view.report.charts.theme import escape
from waterjar.view.report.model import Model

TITLE = "Learning curves"
ORDER = 30
_OVER = "total_epoch"
_VARIABLES = ("accuracy", "macro_accuracy", "loss")
_FIRST = ("t2_shortcut_normal", "t2_shortcut_masked", "t1_all", "t2_nonshortcut_normal")
"""Evaluation sets of the laboratory that tell most; a study that lacks them shows its own first ones."""
_MOST = 6


def blocks(model: Model) -> list[Block]:
    """One chart: a panel per evaluation set; nothing where nothing was evaluated during training."""
    chosen = _chosen(model)
    if chosen is None:
        return []
    variable, sets = chosen
    settings = {"variable": variable, "eval_sets": sets} if sets else {"variable": variable}
    frame = model.figure_data("learning_curves", **settings)
    if frame.empty:  # some runs lack a set that others have
        return []
    about = figures.describe("learning_curves")
    word = variable.replace("_", " ")
    arrow = "↓" if variable == "loss" else "↑"
    titles = {name: escape(shorten(name, 34)) for name in frame["eval_set"].unique()}
    return [
        Chart(
            name="learning_curves",
            title=about.title,
            panels=panels_over(frame, "eval_set", model.keys, over=_OVER, titles=titles, y=f"{word} {arrow}"),
            frame=frame,
            caption=about.caption,
            alt=f"Lines of {word} over epochs, one panel per evaluation set. {last_values(frame, 'eval_set', _OVER)}",
            keys=tuple(model.keys.values()),
            figure="learning_curves",
            settings=settings,
        )
    ]


def _chosen(model: Model) -> tuple[str, list[str]] | None:
    """The variable and the evaluation sets to show; None where nothing was evaluated."""
    for variable in _VARIABLES:
        frame = model.figure_data("learning_curves", variable=variable)
        if len(frame):
            known = list(dict.fromkeys(frame["eval_set"]))
            told = [name for name in _FIRST if name in known] or [name for name in known if name][:_MOST]
            return variable, told
    return None
