"""Single numbers that know why they are missing: checking them, subtracting them, putting them in a row."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, SupportsFloat

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError

Number = Result | SupportsFloat


def as_number(value: object, right: str) -> float:
    """A plain float from any kind of real number, numpy's too, or the error that says what would be `right`.

    Narrow floats are read by their shortest digits: np.float32(0.6) was meant as 0.6 and not as 0.6000000238.
    True, dates and arrays are no numbers; text is, if it reads as one (YAML takes 1e-1 for text).

    >>> import numpy as np
    >>> as_number(np.float32(0.6), "threshold: an accuracy")
    0.6
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, bool) or not isinstance(value, numbers.Real | str):
        raise WaterjarError(f"{right} would be right")
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise WaterjarError(f"{right} would be right") from error


def as_result(value: Number, name: str, low: float = 0.0, high: float = 1.0) -> Result:
    """A number in [low, high] as a Result; NaN is missing as `not_a_number`; a Result keeps its reason."""
    if isinstance(value, Result):
        found = value
    else:
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise WaterjarError(f"{name}={value!r}: one number would be right") from error
        found = Result.missing("not_a_number", f"{name} is NaN") if math.isnan(number) else Result(number)
    if not math.isnan(found.value) and not low <= found.value <= high:
        raise WaterjarError(
            f"{name}={found.value:g}: a number in [{low:g}, {high:g}] would be right; divide percentages by 100"
        )
    return found


def minus(a: Result, b: Result) -> Result:
    """a - b; missing for the first reason found.

    >>> minus(Result(0.5), Result.missing("empty_set")).reason
    'empty_set'
    """
    for one in (a, b):
        if one.reason != "present":
            return Result.missing(one.reason, one.note, n=0, censored=one.censored)
    return Result(a.value - b.value)


def per_seed(name: str, results: Sequence[Result], attributes: dict[str, Any] | None = None) -> dict[str, xr.Variable]:
    """One Result per seed as the variable `name` (repeat,), with its reasons."""
    values = np.array([result.value for result in results], np.float64)
    codes = np.array([result.code for result in results], np.uint8)
    return variable(name, ["repeat"], values, codes, attributes)
