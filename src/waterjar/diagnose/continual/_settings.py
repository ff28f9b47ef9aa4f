"""What the family is told: which numbers to read, and how to make metrics of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from waterjar.errors import given_as
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


def chances(settings: Any, tasks: Sequence[int], classes: int | None) -> tuple[tuple[float, ...], str]:
    """Chance for each of the tasks: as told, else 1/K of the K classes that all compete.

    NaN where it is not known; then the note says what would help.
    """
    if settings.chance is None:
        unknown = (math.nan,) * len(tasks)
        if settings.variable == "task_accuracy":
            return unknown, (
                "of task_accuracy only a task's own classes compete, and how many there are is not recorded: "
                f"tell it, 1 / its classes, with {given_as('chance', 0.5)}; a list has one number per task"
            )
        if not classes:
            return unknown, (
                "the run has not recorded its classes, which accuracy above chance needs: "
                f"tell chance, 1 / classes, with {given_as('chance', 0.5)}, or pass classes= to the Recorder"
            )
        return (1 / classes,) * len(tasks), ""
    if isinstance(settings.chance, tuple):
        return tuple(settings.chance[task] for task in tasks), ""
    return (settings.chance,) * len(tasks), ""
