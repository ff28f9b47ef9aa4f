"""Arrays put one after the other, in plain numpy: hundreds of variables of hundreds of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.reader import Arrays
from waterjar.run.schema import REASON, REASONS, flags

_NOT_RECORDED, _NOT_A_NUMBER, _RUN_ENDED = map(REASONS.index, ("not_recorded", "not_a_number", "run_ended"))
_FILLS = {"f": np.nan, "i": np.nan, "u": np.nan, "b": False, "O": "", "U": ""}


class UnlikeError(WaterjarError):
    """Runs of one cell whose steps do not fit together."""


def codes_of(values: NDArray[Any], reasons: NDArray[Any] | None) -> NDArray[np.uint8]:
    """Why values are missing, as codes; 0 where they are there. NaN that nobody explains is `not_a_number`."""
    if reasons is not None:
        return np.asarray(reasons, np.uint8)
    if values.dtype.kind != "f":
        return np.zeros(values.shape, np.uint8)
    return np.where(np.isnan(values), _NOT_A_NUMBER, 0).astype(np.uint8)


def join(
    parts: dict[str, Arrays],
    seeds: dict[str, list[int]],
    coordinates: set[str],
    called: Mapping[str, str] | None = None,
    ends: Mapping[str, int] | None = None,
) -> tuple[Arrays, set[str]]:
    """Put the repeats of several runs of one cell side by side; returns arrays and which are coordinates.

    Variables keep their dimensions and `repeat` grows; those of a whole process (seconds) get a dimension
    `run` instead. Where a run is shorter, or lacks a variable that others have, the value is NaN and the
    reason says which of the two. Errors name runs as they are `called`. `ends` are the last steps of runs that did not
    end with their last row: what is missing up to there was not recorded.
    """
    check_seeds(seeds)
    shown = {run: (called or {}).get(run, run) for run in parts}
    dim = next((d for d in ("step", "snapshot") if any(d in arrays for arrays in parts.values())), "")
    labels = _shared_labels(parts, dim, shown) if dim else np.empty(0)
    joined: Arrays = {}
    names = {name for arrays in parts.values() for name in arrays} - {"repeat", "seed"}
    for name in sorted(names, key=lambda name: (name not in coordinates, name)):  # these must agree before all else
        dims, example, attributes = next(arrays[name] for arrays in parts.values() if name in arrays)
        if "event" in dims or name.endswith(REASON):
            continue
        if name in coordinates or not {"repeat", dim} & set(dims):
            joined[name] = _common(parts, name, dim, labels, shown)
            continue
        along, of_runs = "repeat", list(parts.values())
        if "repeat" not in dims:  # of the whole process, such as seconds
            along, dims = "run", (*dims, "run")
            of_runs = [_of_run(arrays, name, dim) for arrays in of_runs]
        for run, arrays in parts.items():
            own = arrays.get(name, ((), example, {}))[1].shape
            if any(n != m for d, n, m in zip(dims, own, example.shape, strict=False) if d not in (along, dim)):
                raise WaterjarError(
                    f"{shown[run]}: {name} has shape {own}, another run of its cell has {example.shape}"
                )
        widths = [len(seeds[run]) if along == "repeat" else 1 for run in parts]
        sizes = {d: np.arange(size) for d, size in zip(dims, example.shape, strict=False) if d != along}
        shared = {d: joined[d][1] if d in joined else numbers for d, numbers in sizes.items()}
        last = [(ends or {}).get(run) for run in parts]
        values, codes = stacked(name, dims, of_runs, widths, shared | {dim: labels}, along, ended=dim, ends=last)
        joined[name] = dims, values, attributes
        if codes.any():
            joined[name + REASON] = dims, codes, flags(name)
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


def _of_run(arrays: Arrays, name: str, dim: str) -> Arrays:
    """A variable of a whole run, with its labels and reasons, over `run` as well."""
    there = [key for key in (name, name + REASON) if key in arrays]
    wide: Arrays = {key: ((*arrays[key][0], "run"), arrays[key][1][..., None], {}) for key in there}
    return wide | {key: arrays[key] for key in (dim,) if key in arrays}


def check_seeds(seeds: dict[str, list[int]]) -> None:
    """Refuse a seed that two runs of a cell have."""
    owner: dict[int, str] = {}
    for run, numbers in seeds.items():
        for seed in numbers:
            if seed in owner:
                raise WaterjarError(f"seed {seed} is in {owner[seed]} and in {run}: a cell has each seed once")
            owner[seed] = run


def _shared_labels(parts: dict[str, Arrays], dim: str, shown: Mapping[str, str]) -> NDArray[Any]:
    """The labels of the longest run; every other run must have a part of them."""
    with_dim = {run: arrays[dim][1] for run, arrays in parts.items() if dim in arrays}
    longest: NDArray[Any] = max(with_dim.values(), key=len)
    for run, labels in with_dim.items():
        if not np.isin(labels, longest).all():
            raise UnlikeError(
                f"{shown[run]} has {dim} labels that a longer run of its cell lacks: they cannot be joined"
            )
    return longest


def _common(parts: dict[str, Arrays], name: str, dim: str, labels: NDArray[Any], shown: Mapping[str, str]) -> Any:
    """A coordinate that all runs share: the longest one, with which the others must agree."""
    found = {run: arrays[name] for run, arrays in parts.items() if name in arrays}
    longest = max(found, key=lambda run: found[run][1].size)
    dims, values, _ = found[longest]
    for run, (_, theirs, _) in found.items():
        mine = values[np.searchsorted(labels, parts[run][dim][1])] if dims == (dim,) else values
        if not np.array_equal(mine, theirs):
            raise UnlikeError(f"{shown[run]} disagrees with {shown[longest]}, a run of the same cell, about {name}")
    return found[longest]


def stacked(
    name: str,
    dims: tuple[str, ...],
    parts: Sequence[Mapping[str, tuple[tuple[str, ...], NDArray[Any], Any]]],
    widths: Sequence[int],
    labels: Mapping[str, NDArray[Any]],
    along: str,
    ended: str = "",
    ends: Sequence[int | None] | None = None,
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """A variable of several parts, one after the other `along` a dimension, at their places among all `labels`.

    Returns values over `dims` and why some are missing: what a part lacks and others have is NaN and `not_recorded`,
    or `run_ended` behind its last label (or the one in `ends`) along the dimension `ended`; words are empty there.
    Flags are off, or NaN too where runs end. Whole numbers stay such where nothing is missing.
    """
    present = [part[name] for part in parts if name in part]
    shape = tuple(sum(widths) if d == along else len(labels[d]) for d in dims)
    places = [[_place(part, d, labels) for d in dims if d != along] if name in part else None for part in parts]
    complete = all(place is None or all(isinstance(one, slice) for one in place) for place in places)
    complete = complete and (len(present) == len(parts) or along not in dims)
    text = any(values.dtype.kind in "OU" for _, values, _ in present)
    dtype = np.dtype(object) if text else np.result_type(*(values.dtype for _, values, _ in present))
    if not complete and dtype.kind in ("iub" if ended else "iu"):
        dtype = np.dtype(np.float64)
    values = np.full(shape, 0 if complete else _FILLS[dtype.kind], dtype)
    codes = np.full(shape, 0 if complete else _NOT_RECORDED, np.uint8)
    start = 0
    for part, place, width, end in zip(parts, places, widths, ends or [None] * len(parts), strict=True):
        whole: list[Any] = [slice(start, start + width) if d == along else slice(None) for d in dims]
        start += width
        if ended in part and ended in dims:
            last = np.searchsorted(labels[ended], part[ended][1][-1:] if end is None else [end], side="right")
            behind = list(whole)
            behind[dims.index(ended)] = slice(int(last[0]) if len(last) else 0, None)
            codes[tuple(behind)] = _RUN_ENDED
        if place is None:
            continue
        own, block, _ = part[name]
        why = codes_of(block, part[name + REASON][1] if name + REASON in part else None)
        if own != dims:  # it lacks `along`, which stands first
            block, why = (np.broadcast_to(array, (width, *array.shape)) for array in (block, why))
        index = _index(iter(place), whole, shape)
        if block.shape != values[index].shape:
            raise WaterjarError(f"{name} has shape {block.shape} in one place and {values[index].shape} in another")
        values[index], codes[index] = block, why
    return values, codes


def _place(part: Mapping[str, Any], dim: str, labels: Mapping[str, NDArray[Any]]) -> Any:
    """Where a part's labels stand among all: everywhere, or rows."""
    if dim not in part or np.array_equal(part[dim][1], labels[dim]):
        return slice(None)
    where = {label: i for i, label in enumerate(labels[dim].tolist())}
    return np.array([where[label] for label in part[dim][1].tolist()], np.int64)


def _index(places: Iterator[Any], whole: Sequence[slice], shape: Sequence[int]) -> tuple[Any, ...]:
    """Slices where they will do, which is quick; else rows of every dimension."""
    found = [one if one.start is not None else next(places) for one in whole]
    if all(isinstance(one, slice) for one in found):
        return tuple(found)
    rows = [np.arange(n)[one] if isinstance(one, slice) else one for one, n in zip(found, shape, strict=True)]
    return np.ix_(*rows)
