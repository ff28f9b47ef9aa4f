"""What was forgotten, and what was carried over."""

from __future__ import annotations

from typing import Any

import pandas as pd

from waterjar.view import figures
from waterjar.view.numbers import estimate, one_line
from waterjar.view.report.blocks import Block, Chart, Items, Text
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.charts.theme import label_names
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Forgetting and transfer"
ORDER = 40
_IN_TICK = 14
"""Characters of a task's name beside the matrix."""
_WITH_NUMBERS = 8
"""Tasks up to which one of several matrices has room for numbers in its squares; pointing at one tells it always."""
_TABLE = (
    "average_accuracy", "learning_accuracy", "average_anytime_accuracy", "forgetting", "backward_transfer",
    "remembering",
    "zero_shot", "forward_transfer", "forward_transfer_gem", "intransigence", "forgetting_rate", "max_dip",
    "min_accuracy",
    "worst_case_accuracy", "stability_gap", "learning_time",
)  # fmt: skip


def blocks(model: Model) -> list[Block]:
    """The task matrix of every learner, and the metrics made from it; nothing where no task was evaluated."""
    if "continual" not in model.diagnosis.results:
        return []
    table = [*metric_table(model, "continual", "Continual-learning metrics", _TABLE), *_notes(model)]
    frame = model.figure_data("task_matrix")
    if frame.empty:
        return table
    about = figures.describe("task_matrix")
    labels = label_names(frame["cell"].unique())
    panels = [_panel(part, labels[str(cell)], len(labels)) for cell, part in frame.groupby("cell", sort=False)]
    return [
        Chart(
            name="task_matrix",
            title=about.title,
            panels=tuple(panels),
            frame=frame,
            caption="Accuracy on each task (down) at the end of training on each task (across), mean over repeats. "
            "Along a row, a drop to the right is forgetting, and what stands left of a task's own training is what "
            "others gave it. A task that is trained again has a column for every visit.",
            alt=_alt(frame),
            figure="task_matrix",
        ),
        *table,
    ]


def _notes(model: Model) -> list[Block]:
    said = model.diagnosis.notes("continual")
    return [Text("About tasks and chance:"), Items(tuple(said))] if said else []


def _panel(part: pd.DataFrame, title: str, panels: int) -> dict[str, Any]:
    trained, evaluated = (list(dict.fromkeys(part[column])) for column in ("train_task", "eval_task"))
    cells = {(line.eval_task, line.train_task): line for line in part.itertuples()}
    names = label_names([*trained, *evaluated], _IN_TICK)
    digits = 3 if panels < 3 or len(trained) <= 5 else 2
    values, texts, hover = [], [], []
    for row in evaluated:
        found = [cells.get((row, column)) for column in trained]
        values.append([float("nan") if one is None else float(one.mean) for one in found])
        texts.append(["–" if one is None or one.mean != one.mean else f"{one.mean:.{digits}f}" for one in found])
        hover.append(
            [
                "no value" if one is None else one_line(estimate(one.mean, one.low, one.high, one.n, scale=1.0))
                for one in found
            ]
        )
    return matrix_panel(
        values,
        [names[name] for name in trained],
        [names[name] for name in evaluated],
        title=title,
        x="after training on",
        y="accuracy ↑ on",
        texts=texts if panels < 3 or len(trained) <= _WITH_NUMBERS else None,
        hover=hover,
        limits=(0.0, 1.0),
        height=120 + 40 * len(evaluated) + 6 * max(0, max(len(names[name]) for name in trained) - 6),
        escaped=True,
    )


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for cell, part in frame.groupby("cell", sort=False):
        last = part[part["train_task"] == part["train_task"].iloc[-1]]
        told = ", ".join(f"{line.eval_task} {line.mean:.3f}" for line in last.itertuples())
        parts.append(f"{cell}: {told}")
    return "Accuracy on every task after training on every task. At the end: " + "; ".join(parts) + "."
