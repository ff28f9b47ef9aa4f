"""Accuracies are shares: what is none is refused where it is recorded, and wherever it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError

TOLERANCE = 1e-6
"""How far rounding may carry a share out of its range; nothing is clipped."""


def outside(values: NDArray[Any], low: float = 0.0, high: float = 1.0) -> NDArray[np.bool_]:
    """Where numbers are not in [low, high] but for rounding; infinite ones are not, and NaN, which is missing, passes.

    >>> outside(np.array([0.5, 1.0000005, np.nan, 75.5, -np.inf])).tolist()
    [False, False, False, True, True]
    """
    return np.asarray((values < low - TOLERANCE) | (values > high + TOLERANCE), np.bool_)


def check_accuracies(values: NDArray[Any], name: str) -> None:
    """Refuse what is no accuracy; NaN is missing, and passes.

    >>> check_accuracies(np.array([75.5]), "top5")
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: top5 has 75.5 at position (0): an accuracy lies in [0, 1]. Divide percentages by 100
    """
    refuse_where(outside(values), values, name, "an accuracy lies in [0, 1]")


def refuse_where(wrong: NDArray[np.bool_], values: NDArray[Any], name: str, expected: str) -> None:
    """Refuse numbers where they are `wrong`; the error has the first of them and where it stands."""
    if wrong.any():
        place = ", ".join(str(int(i)) for i in np.argwhere(wrong)[0])
        raise WaterjarError(
            f"{name} has {float(values[wrong][0]):.7g} at position ({place}): {expected}. Divide percentages by 100"
        )
