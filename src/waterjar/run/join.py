"""Joining the runs of a cell along `repeat`, in plain numpy: a study has hundreds of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.reader import Arrays
from waterjar.run.schema import REASONS

_NOT_RECORDED, _RUN_ENDED = (REASONS.index(name) for name in ("not_recorded", "run_ended"))
_REASON = "_reason"


def join(parts: dict[str, Arrays], seeds: dict[str, list[int]], coordinates: set[str]) -> tuple[Arrays, set[str]]:
    """Put the repeats of several runs of one cell side by side; returns arrays and which are coordinates.

    Variables keep their dimensions and `repeat` grows; those of a whole process (seconds) get a dimension
    `run` instead. Where a run is shorter, or lacks a variable that others have, the value is NaN and the
    reason says which of the two.
    """
    _check_seeds(seeds)
    dim = next((d for d in ("step", "snapshot") if any(d in arrays for arrays in parts.values())), "")
    labels = _shared_labels(parts, dim) if dim else np.empty(0)
    joined: Arrays = {}
    for name in sorted({name for arrays in parts.values() for name in arrays} - {"repeat", "seed"}):
        dims = next(arrays[name][0] for arrays in parts.values() if name in arrays)
        if "event" in dims or name.endswith(_REASON):
            continue
        if name in coordinates or not {"repeat", dim} & set(dims):
            joined[name] = _common(parts, name, dim, labels)
        else:
            joined |= _side_by_side(parts, seeds, name, dim, labels)
    everyone = [seed for run in parts for seed in seeds[run]]
    owners = [run for run in parts for _ in seeds[run]]
    joined["repeat"] = (("repeat",), np.arange(len(everyone)), {"long_name": "repeat"})
    joined["seed"] = (("repeat",), np.asarray(everyone), {"long_name": "seed of the repeat"})
    joined["directory"] = (
        ("repeat",),
        np.asarray(owners, dtype=object),
        {"long_name": "directory of the run"},
    )
    extra = {"repeat", "seed", "directory"}
    if any("run" in dims for dims, _, _ in joined.values()):
        joined["run"] = (
            ("run",),
            np.asarray(list(parts), dtype=object),
            {"long_name": "directory of the run"},
        )
        extra.add("run")
    return joined, coordinates | extra


def _check_seeds(seeds: dict[str, list[int]]) -> None:
    owner: dict[int, str] = {}
    for run, numbers in seeds.items():
        for seed in numbers:
            if seed in owner:
                raise WaterjarError(f"seed {seed} is in {owner[seed]} and in {run}: a cell has each seed once")
            owner[seed] = run


def _shared_labels(parts: dict[str, Arrays], dim: str) -> NDArray[Any]:
    """The labels of the longest run; every other run must have a part of them."""
    with_dim = {run: arrays[dim][1] for run, arrays in parts.items() if dim in arrays}
    longest: NDArray[Any] = max(with_dim.values(), key=len)
    for run, labels in with_dim.items():
        if not np.isin(labels, longest).all():
            raise WaterjarError(f"{run} has {dim} labels that a longer run of its cell lacks: they cannot be joined")
    return longest


def _common(parts: dict[str, Arrays], name: str, dim: str, labels: NDArray[Any]) -> Any:
    """A coordinate that all runs share: the longest one, with which the others must agree."""
    found = {run: arrays[name] for run, arrays in parts.items() if name in arrays}
    longest = max(found, key=lambda run: found[run][1].size)
    dims, values, _ = found[longest]
    for run, (_, theirs, _) in found.items():
        mine = values[np.searchsorted(labels, parts[run][dim][1])] if dims == (dim,) else values
        if not np.array_equal(mine, theirs):
            raise WaterjarError(f"{run} disagrees with {longest}, a run of the same cell, about {name}")
    return found[longest]


def _side_by_side(
    parts: dict[str, Arrays], seeds: dict[str, list[int]], name: str, dim: str, labels: NDArray[Any]
) -> Arrays:
    found = {run: arrays[name] for run, arrays in parts.items() if name in arrays}
    dims, example, attributes = next(iter(found.values()))
    along = "repeat" if "repeat" in dims else "run"
    new_dims = dims if along in dims else (*dims, along)
    axis = new_dims.index(along)
    widths = [len(seeds[run]) if along == "repeat" else 1 for run in parts]
    sizes = dict(zip(dims, example.shape, strict=True)) | {along: sum(widths)}
    if dim in dims:
        sizes[dim] = len(labels)
    shape = tuple(sizes[d] for d in new_dims)
    common = np.result_type(*(array.dtype for _, array, _ in found.values()))
    values = np.full(shape, np.nan, dtype=common if common.kind == "f" else np.float64)
    codes = np.full(shape, _NOT_RECORDED, dtype=np.uint8)
    start = 0
    for (run, arrays), width in zip(parts.items(), widths, strict=True):
        place: list[Any] = [slice(None)] * len(shape)
        place[axis] = slice(start, start + width)
        start += width
        if dim in dims:
            if dim not in arrays:
                continue
            rows = np.atleast_1d(np.searchsorted(labels, arrays[dim][1]))
            ended = list(place)
            ended[new_dims.index(dim)] = slice(rows[-1] + 1 if len(rows) else 0, None)
            codes[tuple(ended)] = _RUN_ENDED  # a label missing before the run's end was not recorded
            place[new_dims.index(dim)] = slice(0, len(rows)) if np.array_equal(rows, np.arange(len(rows))) else rows
        if run in found:
            block = _matching(found[run][1], values[tuple(place)].shape, axis if along == "run" else None, run, name)
            values[tuple(place)] = block
            codes[tuple(place)] = 0
            if name + _REASON in arrays:
                reasons = arrays[name + _REASON][1]
                codes[tuple(place)] = reasons if along == "repeat" else np.expand_dims(reasons, axis)
        else:
            codes[tuple(place)] = _NOT_RECORDED
    if not codes.any():
        exact = values.astype(common) if common.kind != "f" else values
        return {name: (new_dims, exact, attributes)}
    flags = {
        "long_name": f"why {name} is missing",
        "flag_values": list(range(len(REASONS))),
        "flag_meanings": " ".join(REASONS),
    }
    return {name: (new_dims, values, attributes), name + _REASON: (new_dims, codes, flags)}


def _matching(block: NDArray[Any], shape: tuple[int, ...], new_axis: int | None, run: str, name: str) -> NDArray[Any]:
    if new_axis is not None:
        block = np.expand_dims(block, new_axis)
    if block.shape != shape:
        raise WaterjarError(f"{run}: {name} has shape {block.shape}, other runs of its cell have {shape}")
    return block
