"""What the family is told: which numbers to read, and how to make metrics of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from waterjar.errors import setting_as
from waterjar.run.faults import Expected

MetricType = Literal["accuracy", "loss"]
AccuracyVariable = Literal["accuracy", "macro_accuracy", "task_accuracy"]
Reference = Literal["max", "learned", "max_or_last"]
REFERENCES: tuple[str, ...] = get_args(Reference)
"""What forgetting is measured from, see `forgetting`."""

Small = Annotated[float, Field(ge=0.0, allow_inf_nan=False), Expected("a small number that is not below 0, as 1e-8")]


def variable_read(settings: Any) -> str:
    """The variable of /performance and /expert that is read."""
    return "loss" if settings.metric_type == "loss" else str(settings.variable)


def chances(
    settings: Any, tasks: Sequence[int], known: float | tuple[float, ...] | None
) -> tuple[tuple[float, ...], str]:
    """Chance for each of the tasks: as set, else as the runs tell it of all classes competing (`Unit.chance`).

    NaN where it is not known; then the note says what would help.
    """
    chance = settings.chance
    if chance is None:
        unknown = (math.nan,) * len(tasks)
        if settings.variable == "task_accuracy":
            return unknown, (
                "of task_accuracy only a task's own classes compete, and how many there are is not recorded: "
                f"tell it, 1 / its classes, with {setting_as('chance', 0.5)}; a list has one number per task"
            )
        if known is None:
            return unknown, (
                "the run has not recorded its classes, which accuracy above chance needs: "
                f"tell chance, 1 / classes, with {setting_as('chance', 0.5)}, or for good with 'waterjar annotate RUN "
                "--chance 0.5'; the next run's Recorder takes classes="
            )
        chance = known
    if isinstance(chance, tuple):
        return tuple(chance[task] for task in tasks), ""
    return (chance,) * len(tasks), ""
