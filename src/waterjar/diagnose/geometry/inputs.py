"""What people hand over, looked at before it is used: points, labels, counts and seeds."""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.errors import WaterjarError

Rng: TypeAlias = int | np.random.SeedSequence


def real_points(points: ArrayLike) -> NDArray[np.float64]:
    """Points as float64, or an error that says why they cannot be."""
    if type(points) is np.ndarray and points.dtype == np.float64:
        return points
    if isinstance(points, np.ma.MaskedArray) and np.ma.getmaskarray(points).any():
        raise WaterjarError("points: a masked array with masked entries; leave those points out, or fill them")
    try:
        found = np.asarray(points)
        if found.dtype.kind == "c":
            raise WaterjarError(
                f"points of type {found.dtype}: they must be real; take their real part or absolute value"
            )
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"points: not an array of numbers (point, dimension): {error}") from error


def sortable_labels(labels: ArrayLike) -> NDArray[Any]:
    """Labels as an array whose values have an order: whole numbers, texts, numbers without NaN.

    >>> sortable_labels(["b", "a"]).tolist()
    ['b', 'a']
    """
    if type(labels) is np.ndarray and labels.dtype.kind in "iuU":
        return labels
    right = "expected one label per point, all of one kind (whole numbers or texts)"
    if isinstance(labels, np.ma.MaskedArray) and np.ma.getmaskarray(labels).any():
        raise WaterjarError(f"labels: a masked array with masked entries; {right}")
    try:
        found = np.asarray(labels)
    except ValueError as error:
        raise WaterjarError(f"labels: {error}; {right}") from error
    # numpy makes texts of [1, "a"] and floats of [1, None]: what was given tells, not what it became.
    plain = (
        list(labels) if isinstance(labels, (list, tuple)) else found.ravel().tolist() if found.dtype == object else []
    )
    kinds = sorted({"text" if isinstance(x, str) else "number" if _is_number(x) else type(x).__name__ for x in plain})
    if found.ndim == 1 and (len(kinds) > 1 or "NoneType" in kinds):
        raise WaterjarError(f"labels of mixed types ({', '.join(kinds)}); {right}")
    if found.dtype == object and found.ndim == 1 and kinds in (["text"], ["number"]):
        found = np.array(found.tolist())
    for kinds_without, is_none, word in (("fc", np.isnan, "NaN"), ("mM", np.isnat, "NaT")):
        if found.dtype.kind in kinds_without and is_none(found).any():
            raise WaterjarError(f"labels: {int(is_none(found).sum())} are {word}; {right}")
    if found.dtype.kind not in "biufSUmM" and found.size:
        raise WaterjarError(f"labels of type {found.dtype}; {right}")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Real, np.bool_))


def at_least(name: str, value: object, least: int, why: str) -> int:
    """A whole number from `least` on."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise WaterjarError(f"{name}={value!r}: it must be a whole number, {why}")
    if value < least:
        raise WaterjarError(f"{name}={value}: {why}")
    return int(value)


def checked_rng(rng: object) -> Rng:
    """A seed that gives the same numbers again."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    right = "a whole number from 0 on, or a numpy SeedSequence, so that the same numbers come again"
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise WaterjarError(f"rng={rng!r}: it must be {right}")
    return int(rng)
