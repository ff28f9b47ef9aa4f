"""What the family is told: which numbers to read, and how to make metrics of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

import numpy as np

from waterjar.diagnose.continual._integrate import INTEGRATORS
from waterjar.errors import WaterjarError, unknown_name

MetricType = Literal["accuracy", "loss"]
AccuracyVariable = Literal["accuracy", "macro_accuracy", "task_accuracy"]
Reference = Literal["max", "learned", "max_or_last"]
REFERENCES: tuple[str, ...] = get_args(Reference)
"""What forgetting is measured from, see `forgetting`."""


@dataclass(frozen=True)
class Settings:
    """The settings of `measure`, checked and as plain numbers and words. See there."""

    metric_type: str
    variable: str
    integrator: str
    eval_sets: tuple[str, ...] | None
    chance: float | tuple[float, ...] | None
    floor_at_chance: bool
    bounded: bool
    eps: float
    forgetting_reference: str

    @property
    def read(self) -> str:
        """The variable of /performance and /expert that is read."""
        return "loss" if self.metric_type == "loss" else self.variable

    def chances(self, tasks: Sequence[int], classes: int | None, where: str) -> tuple[tuple[float, ...], str]:
        """Chance for each of the tasks: as told, else 1/K of the K classes that all compete.

        NaN where it is not known; then the note says what would help.
        """
        if self.chance is None:
            unknown = (math.nan,) * len(tasks)
            if self.variable == "task_accuracy":
                return unknown, (
                    "of task_accuracy only a task's own classes compete, and how many there are is not recorded: "
                    "give chance=[...], 1 / its classes for every task"
                )
            if not classes:
                return unknown, (
                    "the run has not recorded its classes, which accuracy above chance needs: "
                    "give chance=1/K, or record with Recorder(classes=[...])"
                )
            return (1 / classes,) * len(tasks), ""
        if isinstance(self.chance, tuple):
            if len(self.chance) <= max(tasks):
                raise WaterjarError(
                    f"chance={list(self.chance)}: one number, or one for every task of {where} (0 to {max(tasks)})"
                )
            return tuple(self.chance[task] for task in tasks), ""
        return (self.chance,) * len(tasks), ""


def check_settings(
    *,
    metric_type: object,
    variable: object,
    integrator: object,
    eval_sets: object,
    chance: object,
    floor_at_chance: object,
    bounded: object,
    eps: object,
    forgetting_reference: object,
) -> Settings:
    """The settings as given, numpy's numbers and arrays among them, or an error that says what would be right."""
    return Settings(
        metric_type=_name("metric_type", metric_type, get_args(MetricType)),
        variable=_name("variable", variable, get_args(AccuracyVariable)),
        integrator=_name("integrator", integrator, INTEGRATORS),
        eval_sets=_eval_sets(eval_sets),
        chance=_chance(chance),
        floor_at_chance=_flag("floor_at_chance", floor_at_chance),
        bounded=_flag("bounded", bounded),
        eps=_number("eps", eps, math.inf, "a small number that is not below 0, such as 1e-8,"),
        forgetting_reference=_name("forgetting_reference", forgetting_reference, REFERENCES),
    )


def _name(what: str, value: object, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise unknown_name(f"continual: {what}", value, known)
    return str(value)


def _flag(what: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise WaterjarError(f"continual: {what}={value!r}: True or False would be right")
    return bool(value)


def _number(what: str, value: object, below: float, right: str, whole: object = None) -> float:
    """A number in [0, below); `whole` is what the person wrote, where the number is a part of it."""
    plain = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real) or not 0 <= float(plain) < below:
        raise WaterjarError(f"continual: {what}={value if whole is None else whole!r}: {right} would be right")
    return float(plain)


def _chance(value: object) -> float | tuple[float, ...] | None:
    if value is None:
        return None
    right = "a number in [0, 1), as 1 / (number of classes), or a list of one for every task"
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(plain, Sequence) and not isinstance(plain, str | bytes):
        return tuple(_number("chance", each, 1.0, right, plain) for each in plain)
    return _number("chance", plain, 1.0, right, plain)


def _eval_sets(value: object) -> tuple[str, ...] | None:
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    if plain is None:
        return None
    names = (plain,) if isinstance(plain, str) else plain
    if not isinstance(names, Sequence) or isinstance(names, bytes) or not all(isinstance(name, str) for name in names):
        raise WaterjarError(
            f"continual: eval_sets={value!r}: a list of names of eval sets, one per task, would be right"
        )
    return tuple(str(name) for name in names)
