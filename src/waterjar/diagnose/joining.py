"""Results put one after the other along a dimension, in plain numpy: hundreds of variables of hundreds of cells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.result import NOT_A_NUMBER, NOT_RECORDED
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

REASON = "_reason"

_Variables = Mapping[str, xr.Variable]
_FILLS = {"f": np.nan, "i": np.nan, "u": np.nan, "b": False, "O": "", "U": ""}


def flags(name: str) -> dict[str, Any]:
    """The attributes of a companion array that says why values of `name` are missing."""
    return {
        "long_name": f"why {name} is missing",
        "flag_values": list(range(len(REASONS))),
        "flag_meanings": " ".join(REASONS),
    }


def codes_of(variables: _Variables, name: str) -> NDArray[np.uint8]:
    """Why values of a variable are missing, as codes; 0 where they are there."""
    if name + REASON in variables:
        return np.asarray(variables[name + REASON].values, np.uint8)
    values = variables[name].values
    if values.dtype.kind != "f":
        return np.zeros(values.shape, np.uint8)
    return np.where(np.isnan(values), NOT_A_NUMBER, 0).astype(np.uint8)


def concatenate(parts: Sequence[xr.Dataset], dim: str) -> xr.Dataset:
    """Put Datasets one after the other along `dim`, with the union of the labels of every other dimension.

    What one part lacks and others have is NaN and `not_recorded`; words are empty there, flags are off. A data
    variable without `dim` gets it; so does a coordinate without it about which the parts disagree (the epoch of
    a snapshot, say), while one about which they agree is shared.
    """
    variables = [{str(name): item for name, item in part.variables.items()} for part in parts]
    coordinates = {str(name) for part in parts for name in part.coords}
    widths = [part.sizes[dim] for part in parts]
    labels = _labels(variables, [dict(part.sizes) for part in parts], dim)
    templates: dict[str, xr.Variable] = {}
    for part in variables:
        for name, item in part.items():
            if name not in templates or item.ndim > templates[name].ndim:
                templates[name] = item
    joined: dict[str, xr.Variable] = {}
    for name, item in templates.items():
        if item.dims == (name,) and name != dim:
            joined[name] = xr.Variable(item.dims, labels[name], item.attrs)
        elif not (name.endswith(REASON) and name.removesuffix(REASON) in templates):
            complete = dim in item.dims or (name in coordinates and _agree(name, variables, labels))
            dims = item.dims if complete else (dim, *item.dims)
            values, codes = _stacked(name, dims, variables, widths, labels, dim)
            joined[name] = xr.Variable(dims, values, item.attrs)
            if codes.any() and values.dtype.kind == "f" and name not in coordinates:
                joined[name + REASON] = xr.Variable(dims, codes, flags(name))
    return xr.Dataset(
        {name: item for name, item in joined.items() if name not in coordinates},
        {name: item for name, item in joined.items() if name in coordinates},
        dict(parts[0].attrs),
    )


def _agree(name: str, variables: Sequence[_Variables], labels: Mapping[str, NDArray[Any]]) -> bool:
    """Whether all parts that have a coordinate give the same value to the same labels."""
    seen: dict[tuple[Any, ...], Any] = {}
    for part in variables:
        if name not in part:
            continue
        own = part[name]
        if not own.dims:
            if seen.setdefault((), own.values.item()) != own.values.item():
                return False
            continue
        places = [_place(part, str(d), labels) for d in own.dims]
        for index, value in zip(
            itertools.product(*(p.tolist() for p in places)), own.values.ravel().tolist(), strict=True
        ):
            known = seen.setdefault(index, value)
            if known != value and not (known != known and value != value):  # noqa: PLR0124 - NaN agrees with NaN
                return False
    return True


def _labels(variables: Sequence[_Variables], sizes: Sequence[Mapping[Any, int]], dim: str) -> dict[str, NDArray[Any]]:
    """The union of labels per dimension: as they are where all agree, else numbers sorted, words in order."""
    found: dict[str, NDArray[Any]] = {}
    for other in dict.fromkeys(str(d) for size in sizes for d in size if d != dim):
        own = [
            part[other].values if other in part else np.arange(size[other])
            for part, size in zip(variables, sizes, strict=True)
            if other in size
        ]
        if all(np.array_equal(labels, own[0]) for labels in own):
            found[other] = own[0]
        elif all(labels.dtype.kind in "iuf" for labels in own):
            found[other] = np.unique(np.concatenate(own))
        else:
            found[other] = np.array(list(dict.fromkeys(label for labels in own for label in labels)), object)
    return found


def _stacked(
    name: str,
    dims: tuple[Any, ...],
    variables: Sequence[_Variables],
    widths: Sequence[int],
    labels: Mapping[str, NDArray[Any]],
    dim: str,
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    present = [part for part in variables if name in part]
    shape = tuple(sum(widths) if d == dim else len(labels[str(d)]) for d in dims)
    own = [d for d in dims if d != dim]
    full = all(
        np.array_equal(part[str(d)].values, labels[str(d)]) if str(d) in part else True for part in present for d in own
    )
    kinds = {part[name].dtype.kind for part in present}
    complete = full and (len(present) == len(variables) or dim not in dims)
    common = np.result_type(*(part[name].dtype for part in present)) if not kinds & set("OU") else np.dtype(object)
    if not complete and common.kind in "iu":
        common = np.dtype(np.float64)  # counts that some lack
    values = np.full(shape, _FILLS[common.kind] if not complete else 0, common)
    codes = np.full(shape, 0 if complete else NOT_RECORDED, np.uint8)
    start = 0
    for part, width in zip(variables, widths, strict=True):
        if name in part:
            place = [_place(part, str(d), labels) if d != dim else np.arange(start, start + width) for d in dims]
            block, why = part[name].values, codes_of(part, name)
            if part[name].dims != dims:  # it lacked `dim`, which stands first
                block, why = np.broadcast_to(block, (width, *block.shape)), np.broadcast_to(why, (width, *why.shape))
            if block.shape != tuple(len(rows) for rows in place):
                raise WaterjarError(f"{name} has the dimensions {part[name].dims} here and {dims} elsewhere")
            values[np.ix_(*place)] = block
            codes[np.ix_(*place)] = why
        start += width
    return values, codes


def _place(part: _Variables, dim: str, labels: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Where a part's labels stand among all."""
    if dim not in part:
        return np.arange(len(labels[dim]))
    mine = part[dim].values
    if np.array_equal(mine, labels[dim]):
        return np.arange(len(mine))
    where = {label: i for i, label in enumerate(labels[dim].tolist())}
    return np.array([where[label] for label in mine.tolist()], np.int64)
