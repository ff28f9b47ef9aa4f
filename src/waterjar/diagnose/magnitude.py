"""Numbers so large or small that their squares leave float64, measured in units of a power of two: that is exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.result import Result

_SAFE = (2.0**-230, 2.0**230)
"""Magnitudes of which the fourth power, and a sum of many of them, neither vanishes nor overflows. All float32 are."""


def in_range(values: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    """(values / 2^k, k), values finite; k is 0 unless the largest is extreme, which then is between 0.5 and 1.

    >>> in_range(np.array([1e200, -3e200]))[0].round(3)
    array([ 0.327, -0.98 ])
    """
    wide: NDArray[np.float64] = values.astype(np.float64, copy=False)
    if values.dtype != np.float64 or not values.size:
        return wide, 0
    largest = max(float(wide.max()), -float(wide.min()))
    if largest == 0.0 or _SAFE[0] < largest < _SAFE[1]:
        return wide, 0
    exponent = math.frexp(largest)[1]
    with np.errstate(under="ignore"):  # what vanishes beside the largest would have no share in any sum
        return np.ldexp(wide, -exponent), exponent


def scaled_back(value: float, exponent: int, n: int) -> Result:
    """value * 2^exponent; what float64 cannot hold is missing, and says so."""
    try:
        return Result(math.ldexp(value, exponent), n=n)
    except OverflowError:
        about = math.floor(math.log10(value) + exponent * math.log10(2.0))
        return Result.missing("not_a_number", f"about 1e{about}: more than float64 can hold", n=n)
