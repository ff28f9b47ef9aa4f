"""From what a training loop hands over to the rows of the schema: shapes checked, reasons kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.accuracies import check_accuracies
from waterjar.run.arrays import cast, fitting, to_numpy
from waterjar.run.identity import text
from waterjar.run.schema import ABSENT, REASONS, Missing, Variable

Array = NDArray[Any]
Sizes = dict[str, int]
"""Dimension -> size, as far as it is known."""

_NOT_A_NUMBER = REASONS.index("not_a_number")


@dataclass(frozen=True)
class Masked:
    """Values of which some are missing, for one reason."""

    values: Array
    where: NDArray[np.bool_]
    reason: Missing


@dataclass(frozen=True)
class Reasoned:
    """Values with the code of why each is missing, 0 where it is not."""

    values: Array
    codes: NDArray[np.uint8]


@fitting("masked values")
def masked(values: object, where: object, reason: str) -> Masked:
    """Log this instead of an array of which some elements are not there: NaN at `where`, and why.

    >>> masked([0.5, 0.0], [False, True], "empty_set").values
    array([0.5, nan])
    """
    array = to_numpy(values, "masked values").astype(np.float64)
    mask = to_numpy(where, "masked where").astype(np.bool_)
    if mask.shape != array.shape:
        raise WaterjarError(f"masked: values have shape {array.shape}, where has {mask.shape}; expected the same")
    return Masked(np.where(mask, np.nan, array), mask, Missing(reason))


@dataclass(frozen=True)
class Row:
    """One row of a variable: values, why some are missing (None if none is), and the dims after the first."""

    values: Array
    reasons: NDArray[np.uint8] | None
    dims: tuple[str, ...]
    variable: Variable


def fit(array: Array, dims: tuple[str, ...], sizes: Sizes, name: str) -> Array:
    """Give an array the full shape of `dims`; dimensions of size 1 may have been left out.

    >>> fit(np.array([0.5, 0.7]), ("eval_set", "repeat"), {"eval_set": 2, "repeat": 1}, "accuracy").shape
    (2, 1)
    """
    full = [sizes.get(dim) for dim in dims]
    if _matches(array.shape, full):
        return array
    ones = [i for i, size in enumerate(full) if size == 1]
    for left_out in itertools.combinations(ones, max(0, len(full) - array.ndim)):
        if _matches(array.shape, [size for i, size in enumerate(full) if i not in left_out]):
            return np.expand_dims(array, left_out)
    right = ", ".join(f"{dim}={'any' if size is None else size}" for dim, size in zip(dims, full, strict=True))
    raise WaterjarError(f"{name} has shape {array.shape}; expected ({right})")


def _matches(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(e is None or s == e for s, e in zip(shape, expected, strict=True))


def step_row(value: object, variable: Variable, sizes: Sizes, eval_sets: Sequence[str], name: str, dtype: str) -> Row:
    """A row of a step group. A mapping goes by eval_set; what it leaves out is missing, not recorded."""
    dims = rest = variable.dims[1:]
    given = {name: value}
    if isinstance(value, Mapping):
        _check_eval_sets(value, dims, eval_sets, name)
        rest = tuple(dim for dim in dims if dim != "eval_set")
        given = {f"{name}['{key}']": value.get(key, Missing("not_recorded")) for key in eval_sets}
    parts = {key: _part(one, rest, sizes, key) for key, one in given.items() if not isinstance(one, Missing)}
    shapes = {part.shape for part, _ in parts.values()}
    if len(shapes) > 1:
        raise WaterjarError(f"{name} has different shapes per eval_set: {sorted(shapes)}; expected one shape")
    shape = (len(given), *(shapes.pop() if shapes else _known_shape(rest, sizes, name)))
    values, reasons = np.full(shape, np.nan), np.zeros(shape, np.uint8)
    for i, (key, one) in enumerate(given.items()):
        if isinstance(one, Missing):
            reasons[i] = one.code
        else:
            values[i], reasons[i] = parts[key]
    reasons[np.isnan(values) & (reasons == 0)] = _NOT_A_NUMBER
    if isinstance(value, Mapping):
        values, reasons = (np.moveaxis(array, 0, dims.index("eval_set")) for array in (values, reasons))
    else:
        values, reasons = values[0], reasons[0]
    stored = cast(values, dtype, name)
    if variable.accuracy:
        check_accuracies(stored, name)
    return Row(stored, reasons.copy() if reasons.any() else None, dims, variable)


def _check_eval_sets(value: Mapping[Any, object], dims: tuple[str, ...], eval_sets: Sequence[str], name: str) -> None:
    if "eval_set" not in dims:
        raise WaterjarError(f"{name} is given by eval_set, but has the dimensions {dims}: give an array")
    for key in value:
        if key not in eval_sets:
            raise unknown_name(f"{name}: eval_set", key, eval_sets)


def _part(value: object, dims: tuple[str, ...], sizes: Sizes, name: str) -> tuple[Array, NDArray[np.uint8]]:
    """Values in full shape as float64, and why some are missing so far."""
    array = value.values if isinstance(value, Masked | Reasoned) else to_numpy(value, name)
    values = fit(array, dims, sizes, name).astype(np.float64)
    if array.dtype.kind in "iu" and (values.astype(array.dtype) != fit(array, dims, sizes, name)).any():
        raise WaterjarError(f"{name} holds a whole number beyond 2**53, which float64 would round")
    reasons = np.zeros(values.shape, np.uint8)
    if isinstance(value, Masked):
        reasons[fit(value.where, dims, sizes, name)] = value.reason.code
    elif isinstance(value, Reasoned):
        reasons = np.where(np.isnan(values), fit(value.codes, dims, sizes, name), 0).astype(np.uint8)
    return values, reasons


def _known_shape(dims: tuple[str, ...], sizes: Sizes, name: str) -> tuple[int, ...]:
    unknown = [dim for dim in dims if dim not in sizes]
    if unknown:
        raise WaterjarError(
            f"{name} is missing and the size of {', '.join(unknown)} is not known yet: log a value first"
        )
    return tuple(sizes[dim] for dim in dims)


def snapshot_row(
    value: object, variable: Variable, sizes: Sizes, probe_sets: Sequence[str], name: str, dtype: str
) -> Row:
    """A row of a snapshot group, or an array written once. A mapping goes by eval_set and must be complete."""
    dims = variable.dims[1:] if variable.dims[0] == "snapshot" else variable.dims
    if isinstance(value, Mapping):
        if "eval_set" not in dims or not probe_sets:
            raise WaterjarError(f"{name} is given by eval_set, but has the dimensions {dims}, {len(probe_sets)} sets")
        if set(value) != set(probe_sets):
            raise WaterjarError(f"{name} is given for {sorted(map(str, value))}; expected all of {list(probe_sets)}")
        axis = dims.index("eval_set")
        rest = dims[:axis] + dims[axis + 1 :]
        parts = [fit(to_numpy(value[key], f"{name}['{key}']"), rest, sizes, f"{name}['{key}']") for key in probe_sets]
        if len({part.shape for part in parts}) > 1:
            raise WaterjarError(f"{name} has different shapes per eval_set: {[part.shape for part in parts]}")
        array = np.stack(parts, axis=axis)
    else:
        array = fit(to_numpy(value, name), dims, sizes, name)
    if variable.is_flag:
        array = as_flags(array, name)
    keep = dtype == "keep" or array.dtype.kind != "f"
    return Row(cast(array, "keep" if keep else dtype, name), None, dims, variable)


def as_flags(array: Array, name: str) -> Array:
    """Yes or no per sample in bytes; ABSENT where nobody looked, which is NaN in floats.

    >>> as_flags(np.array([1.0, np.nan]), "correct")
    array([  1, 255], dtype=uint8)
    """
    gone = np.isnan(array) if array.dtype.kind == "f" else array == ABSENT
    if not np.isin(array[~gone], (0, 1)).all():
        raise WaterjarError(f"{name}: expected True or False (1 or 0) for each example, NaN where nobody looked")
    return np.where(gone, ABSENT, np.where(gone, 0, array)).astype(np.uint8)


@dataclass(frozen=True)
class LayerTable:
    """Which stretch of the flattened parameters belongs to which layer."""

    layers: tuple[str, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    shapes: tuple[str, ...]


@fitting("weights")
def flatten_parameters(parameters: Mapping[str, object], repeats: int) -> tuple[Array, LayerTable]:
    """Turn a state_dict (or any name -> array mapping) into (repeat, param) and its table.

    With more than one repeat every array has `repeat` as its first dimension.
    """
    flat: list[Array] = []
    shapes: list[str] = []
    for name, value in parameters.items():
        text("a name in weights", name)
        array = to_numpy(value, f"weights['{name}']")
        if repeats > 1 and array.shape[:1] != (repeats,):
            raise WaterjarError(
                f"weights['{name}'] has shape {array.shape}; expected a first dimension repeat={repeats}"
            )
        inner = array.shape[1:] if repeats > 1 else array.shape
        flat.append(array.reshape(repeats, math.prod(inner)))
        shapes.append("x".join(map(str, inner)))
    if not flat:
        raise WaterjarError("weights is an empty mapping; expected name -> array, such as a state_dict")
    floats = [array.dtype for array in flat if array.dtype.kind == "f"]
    dtype = np.result_type(*floats) if floats else np.dtype(np.float64)
    stops = np.cumsum([array.shape[1] for array in flat]).tolist()
    table = LayerTable(tuple(parameters), (0, *stops[:-1]), tuple(stops), tuple(shapes))
    return np.concatenate([array.astype(dtype) for array in flat], axis=1), table
