"""Settings as they come from a caller or a command line: one error in words for each that cannot be meant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from waterjar.errors import WaterjarError


def number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """A finite number above `low` and below `high`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < float(value) < high:
        span = f"above {low:g}" + ("" if high == math.inf else f" and below {high:g}")
        raise WaterjarError(f"{name}={value!r}: a number {span} would be right")
    return float(value)


def count(name: str, value: Any, low: int = 0) -> int:
    """A whole number, `low` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise WaterjarError(f"{name}={value!r}: a whole number, {low} or more, would be right")
    return int(value)


def names(name: str, value: Any, *, none_given: str) -> list[str]:
    """A list of different names; `none_given` says what an empty one would have to mean, or is empty if it is fine."""
    right = f"{name}={value!r}: a list of different names would be right"
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(x, str) for x in value):
        raise WaterjarError(right)
    if len(set(value)) < len(value) or (not value and none_given):
        raise WaterjarError(right + (f"; {none_given}" if not value else ""))
    return list(value)
