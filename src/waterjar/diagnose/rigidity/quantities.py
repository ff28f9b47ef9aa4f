"""Numbers that know why they are missing: checking them, and subtracting them."""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import outside

Number = Result | SupportsFloat


def as_result(value: Number, name: str, low: float = 0.0, high: float = 1.0) -> Result:
    """A number in [low, high] as a Result; NaN is missing as `not_a_number`; a Result keeps its reason."""
    if isinstance(value, Result):
        found = value
    else:
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise WaterjarError(f"{name}={value!r}: expected one number") from error
        found = Result.missing("not_a_number", f"{name} is NaN") if math.isnan(number) else Result(number)
    values = np.atleast_1d(found.value)
    wrong = outside(values, low, high) if math.isfinite(low) else np.zeros(values.shape, np.bool_)
    if wrong.any():
        raise WaterjarError(
            f"{name}={values[wrong][0]:.7g}: expected a number in [{low:g}, {high:g}]; divide percentages by 100"
        )
    return found


def minus(a: Result, b: Result) -> Result:
    """a - b; missing for the first reason found.

    >>> minus(Result(0.5), Result.missing("empty_set")).reason
    'empty_set'
    """
    codes = np.where(np.asarray(a.code) > 0, a.code, b.code)
    censored = np.logical_or(a.censored, b.censored)[()]
    return Result.of(np.subtract(a.value, b.value), codes, censored=censored, note=a.note or b.note)
