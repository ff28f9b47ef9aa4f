"""The settings of `measure`, checked one by one: each is what it should be, or an error names it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from waterjar.diagnose.rigidity.curves import check_threshold, check_window
from waterjar.diagnose.rigidity.quantities import as_number
from waterjar.diagnose.rigidity.side import full_eval_sets
from waterjar.errors import WaterjarError, unknown_name

CHECKPOINTS = ("best", "last")


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings as plain data, numbers of numpy made Python's: what JSON keeps, and equal ones look equal."""
    given = dict(settings)
    found: dict[str, Any] = {
        "threshold": check_threshold(given["threshold"]),
        "window": check_window(given["window"]),
        "variable": _text(given["variable"], "variable", "the name of a recorded variable"),
        "checkpoint": _text(given["checkpoint"], "checkpoint", " or ".join(CHECKPOINTS)),
        "baseline": None
        if given["baseline"] is None
        else _text(given["baseline"], "baseline", "a scenario, the name of a cell, or None"),
        "eval_sets": None if given["eval_sets"] is None else _eval_sets(given["eval_sets"]),
        "thresholds": _thresholds(given["thresholds"]),
        "margin": _margin(given["margin"]),
        "confidence": between(given["confidence"], "confidence", 0, 1),
        "composite": _switch(given["composite"], "composite"),
        "weights": check_weights(given["weights"]),
        "rng_seed": _seed(given["rng_seed"]),
    }
    # a power below the level of the test would ask for no seeds at all
    found["power"] = between(given["power"], "power", round(1 - found["confidence"], 12), 1)
    if found["checkpoint"] not in CHECKPOINTS:
        raise unknown_name("checkpoint", found["checkpoint"], CHECKPOINTS)
    return {name: found[name] for name in given}


def between(value: object, name: str, low: float, high: float) -> float:
    """A number above `low` and below `high`.

    >>> between(0.95, "confidence", 0, 1)
    0.95
    """
    right = f"{name}={value!r}: a number between {low:g} and {high:g}"
    number = as_number(value, right)
    if not low < number < high:
        raise WaterjarError(f"{right} would be right")
    return number


def check_weights(value: object) -> list[float]:
    """Of AD / budget, PD and SFR_rel: three finite numbers."""
    right = f"weights={value!r}: three numbers, one each of AD, PD and SFR_rel,"
    weights = [as_number(weight, right) for weight in _several(value, right)]
    if len(weights) != 3 or not all(math.isfinite(weight) for weight in weights):
        raise WaterjarError(f"{right} would be right")
    return weights


def _thresholds(value: object) -> list[float]:
    levels = _several(value, f"thresholds={value!r}: several accuracies to reach, such as [0.5, 0.6],")
    if not levels:
        raise WaterjarError("thresholds is empty: at least one accuracy to reach would be right")
    found = [check_threshold(level, "thresholds") for level in levels]
    twice = [level for level in found if found.count(level) > 1]
    if twice:
        raise WaterjarError(f"thresholds has {twice[0]:g} twice: it would count twice in the mean over them")
    return found


def _several(value: object, right: str) -> list[Any]:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise WaterjarError(f"{right} would be right")
    return list(value)


def _margin(value: object) -> float:
    right = f"margin={value!r}: a difference of accuracies in [0, 1]"
    margin = as_number(value, right)
    if not 0 <= margin <= 1:
        raise WaterjarError(f"{right} would be right")
    return margin


def _eval_sets(value: Any) -> dict[str, str]:
    full = full_eval_sets(value)
    return {role: full[role] for role in value}


def _text(value: object, name: str, what: str) -> str:
    if not isinstance(value, str):
        raise WaterjarError(f"{name}={value!r}: {what} would be right")
    return str(value)


def _switch(value: object, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise WaterjarError(f"{name}={value!r}: True or False would be right")
    return bool(value)


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise WaterjarError(f"rng_seed={value!r}: a whole number from 0 on would be right")
    return int(value)
