"""What the family is told: which numbers to read, and how to make metrics of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from waterjar.diagnose.continual._integrate import INTEGRATORS
from waterjar.errors import WaterjarError, unknown_name

MetricType = Literal["accuracy", "loss"]
AccuracyVariable = Literal["accuracy", "macro_accuracy", "task_accuracy"]


@dataclass(frozen=True)
class Settings:
    """The settings of `measure`, checked. See there."""

    metric_type: str
    variable: str
    integrator: str
    eval_sets: tuple[str, ...] | None
    chance: float | tuple[float, ...] | None
    floor_at_chance: bool
    bounded: bool
    eps: float
    forgetting_reference: str

    def __post_init__(self) -> None:
        for what, value, known in (
            ("metric_type", self.metric_type, get_args(MetricType)),
            ("variable", self.variable, get_args(AccuracyVariable)),
            ("integrator", self.integrator, INTEGRATORS),
        ):
            if value not in known:
                raise unknown_name(f"continual: {what}", value, known)
        if not self.eps >= 0:
            raise WaterjarError(f"eps={self.eps}: a small number that is not below 0 would be right")

    @property
    def read(self) -> str:
        """The variable of /performance and /expert that is read."""
        return "loss" if self.metric_type == "loss" else self.variable

    def chances(self, tasks: Sequence[int], classes: int | None, where: str) -> tuple[float, ...]:
        """Chance for each of the tasks: as told, else 1/K of the K classes that all compete."""
        if self.chance is None:
            if self.variable == "task_accuracy":
                raise WaterjarError(
                    f"{where}: of task_accuracy only a task's own classes compete, and how many there are is not "
                    "recorded: give chance=[...], 1 / its classes for every task"
                )
            if not classes:
                raise WaterjarError(
                    f"{where} has not recorded its classes, which accuracy above chance needs: "
                    "give chance=1/K, or record with Recorder(classes=[...])"
                )
            return (1 / classes,) * len(tasks)
        if isinstance(self.chance, tuple):
            if len(self.chance) <= max(tasks):
                raise WaterjarError(
                    f"chance={list(self.chance)}: one number, or one for every task of {where} (0 to {max(tasks)})"
                )
            return tuple(self.chance[task] for task in tasks)
        return (self.chance,) * len(tasks)
