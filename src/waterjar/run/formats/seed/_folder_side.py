"""The layout as it stands on disk: every file of every task is looked at before anything is made of it."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, brief
from waterjar.run.formats.seed import _names as names
from waterjar.run.formats.seed._labels import check_labels, check_pairs
from waterjar.run.npz_file import FAULTS
from waterjar.run.plain_pickle import read_plain_pickle
from waterjar.run.schema import REASONS

Array = NDArray[Any]
_STORABLE = "biuf"
_MAGIC = b"\x93NUMPY"


@dataclass
class Layout:
    """What all tasks have in common, and what each has for itself."""

    folders: list[Path]
    logged: int
    """L."""
    repeats: int
    pairs: Array
    """(repeat, task, member)."""
    metadata: list[dict[str, Any]]
    files: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    """Shape and dtype of the .npy files that every task has."""
    has_expert: bool
    labels: Array | None
    """(eval, sample, repeat)."""
    initial: Array | None
    """(repeat, param)."""
    notes: list[str] = field(default_factory=list)


def read_layout(folder: Path) -> Layout:
    """Check a layout as a whole; metrics and arrays stay on disk."""
    folders = _task_folders(folder)
    metadata = [_read_metadata(place / names.METADATA, task) for task, place in enumerate(folders)]
    first = _values(folders[0] / names.METRICS, read_dictionary(folders[0] / names.METRICS), "test_acc")
    if first.ndim != 3 or not all(first.shape[:2]) or first.shape[2] != len(folders):
        raise WaterjarError(
            f"{folders[0] / names.METRICS}: test_acc has shape {first.shape}; expected (L, R, eval={len(folders)}), "
            f"as many as there are task folders in {folder}"
        )
    logged, repeats = first.shape[:2]
    pairs = [
        check_pairs(about.get("class_pairs"), repeats, str(place / names.METADATA))
        for about, place in zip(metadata, folders, strict=True)
    ]
    for part, place in zip(pairs, folders, strict=True):
        if part.shape != pairs[0].shape:
            raise WaterjarError(
                f"{place / names.METADATA}: {part.shape[1]} classes, {folders[0].name} has {pairs[0].shape[1]}"
            )
    found = Layout(folders, logged, repeats, np.stack(pairs, axis=1), metadata, {}, False, None, None)
    found.has_expert = _in_all(folders, names.EXPERT)
    for task, place in enumerate(folders):
        read_metrics(found, task)
        if found.has_expert:
            read_expert(found, task)
        if metadata[task]["config"] != metadata[0]["config"]:
            raise WaterjarError(f"{place / names.METADATA}: its config is not that of {folders[0].name}")
    for name, dims in ((names.REPRESENTATIONS, "L, R, eval, S, H"), (names.WEIGHTS, "L, R, params")):
        if _in_all(folders, name):
            _check_arrays(found, name, dims)
    _check_labels(found)
    _check_initial(found, folder / names.INITIAL)
    more = {item.name for item in folder.iterdir()} - {names.INITIAL, *(place.name for place in folders)}
    more |= {item.name for place in folders for item in place.iterdir()} - {*names.TASK_FILES}
    if more:
        found.notes.append(f"files that are no part of a run: {', '.join(sorted(more))[:300]}")
    return found


def _task_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise WaterjarError(f"{folder} is not a directory: give results/{{dataset}}/{{algorithm}}")
    numbers = sorted(
        int(item.name[5:]) for item in folder.iterdir() if item.is_dir() and re.fullmatch(r"task_\d{3,9}", item.name)
    )
    if not numbers:
        inside = sorted([*folder.glob("*/task_000"), *folder.glob("*/*/task_000")])
        hint = f"; {inside[0].parent} has them" if inside else ""
        raise WaterjarError(f"{folder} has no folders task_000, task_001 ...{hint}")
    for expected, number in enumerate(numbers):
        if number != expected:
            raise WaterjarError(
                f"{folder / names.task_folder(expected)} is missing: there is {names.task_folder(number)}"
            )
    return [folder / names.task_folder(task) for task in numbers]


def _read(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read_bytes()
    except OSError as error:
        raise WaterjarError(f"could not read {file}: {error.strerror}") from error
    except MemoryError as error:
        raise WaterjarError(f"{file} does not fit into memory") from error


def _read_metadata(file: Path, task: int) -> dict[str, Any]:
    try:
        found = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise WaterjarError(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("config", {}), dict):
        raise WaterjarError(f"{file}: expected a mapping with task_id, class_pairs and config (a mapping too)")
    own = found.get("task_id", task)
    if own != task or isinstance(own, bool):
        raise WaterjarError(f"{file}: task_id is {brief(own)}, expected {task}")
    about = found.get("waterjar")
    return {**found, "config": found.get("config", {}), "waterjar": about if isinstance(about, dict) else None}


def read_dictionary(file: Path) -> dict[str, object]:
    """The dictionary in a pickle, of which nothing is run."""
    return read_plain_pickle(_read(file), str(file))


def _values(file: Path, stored: dict[str, object], key: str) -> NDArray[np.float64]:
    if key not in stored:
        raise WaterjarError(f"{file} has no '{key}': its keys are {sorted(stored)[:10]}")
    value = stored[key]
    try:
        array = np.asarray(value)
        if array.dtype.kind not in _STORABLE:
            raise ValueError(f"it holds {array.dtype}")
        return array if array.dtype == np.float32 else array.astype(np.float64)
    except ValueError as error:
        raise WaterjarError(f"{file}: '{key}' is not an array of numbers ({error})") from error


Values = dict[str, tuple[NDArray[np.float64], str | None]]
"""key -> values, and why those that are NaN are missing; None if that is not said."""


def read_metrics(layout: Layout, task: int) -> Values:
    """test_* (L, R, eval) and train_* (L, R) of a task."""
    per_set = (layout.logged, layout.repeats, len(layout.folders))
    return _checked(
        layout, task, names.METRICS, {**dict.fromkeys(names.TEST, per_set), **dict.fromkeys(names.TRAIN, per_set[:2])}
    )


def read_expert(layout: Layout, task: int) -> Values:
    """All four (L, R)."""
    shape = (layout.logged, layout.repeats)
    return _checked(layout, task, names.EXPERT, dict.fromkeys([*names.TEST, *names.EXPERT_TRAIN], shape))


def _checked(layout: Layout, task: int, name: str, shapes: dict[str, tuple[int, ...]]) -> Values:
    file = layout.folders[task] / name
    stored = read_dictionary(file)
    reasons = _reasons(layout.metadata[task], name)
    found: Values = {}
    for key, shape in shapes.items():
        values = _values(file, stored, key)
        if values.shape != shape:
            right = ", ".join(f"{dim}={size}" for dim, size in zip(("L", "R", "eval"), shape, strict=False))
            raise WaterjarError(f"{file}: {key} has shape {values.shape}; expected ({right}), as in task_000")
        gone, reason = np.isnan(values), reasons.get(key)
        if key in names.SHARES and (((values < 0) | (values > 1)).any() or (gone.any() and reason is None)):
            wrong = values[~((values >= 0) & (values <= 1))].flat[0]
            raise WaterjarError(f"{file}: {key} holds {wrong}; expected shares of samples, from 0 to 1")
        if gone.any() and reason is None:
            layout.notes.append(f"{name}: {key} has NaN, kept as such (not_a_number)")
        found[key] = values, reason
    more = sorted(set(stored) - set(shapes))
    if more:
        layout.notes.append(f"{name}: keys that a run has no place for: {', '.join(more)[:200]}")
    return found


def _reasons(metadata: dict[str, Any], name: str) -> dict[str, str]:
    said = metadata["waterjar"].get("missing") if metadata["waterjar"] else None
    part = said.get(name) if isinstance(said, dict) else None
    return {k: v for k, v in part.items() if v in REASONS[1:]} if isinstance(part, dict) else {}


def _in_all(folders: list[Path], name: str) -> bool:
    """Whether every task has a file; some with and some without it is an error."""
    there = [(place / name).is_file() for place in folders]
    if any(there) and not all(there):
        raise WaterjarError(f"{folders[there.index(False)] / name} is missing; other tasks have it")
    return all(there)


def open_array(file: Path) -> Array:
    """An .npy, mapped and not read; pickled objects are refused."""
    try:
        if not file.is_file():
            raise ValueError("there is no such file")
        with file.open("rb") as handle:
            if handle.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it does not begin as one")
        found: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except FAULTS as error:
        raise WaterjarError(f"{file} is not an .npy of numbers: {error}") from error
    if found.dtype.kind not in _STORABLE or found.dtype.itemsize > 8:
        raise WaterjarError(f"{file} is not an .npy of numbers of at most 64 bits: it holds {found.dtype}")
    return found


def _check_arrays(layout: Layout, name: str, dims: str) -> None:
    for place in layout.folders:
        array = open_array(place / name)
        known = layout.files.setdefault(name, (array.shape, array.dtype))
        wanted = (layout.logged, layout.repeats)
        if array.ndim != dims.count(",") + 1 or array.shape[:2] != wanted or not array.size:
            raise WaterjarError(
                f"{place / name} has shape {array.shape}; expected ({dims}) with L={wanted[0]} and R={wanted[1]}"
            )
        if (array.shape, array.dtype) != known:
            raise WaterjarError(
                f"{place / name} has shape {array.shape} and dtype {array.dtype}; expected {known[0]} and {known[1]}, "
                "as in task_000"
            )


def _check_labels(layout: Layout) -> None:
    """Labels are those of fixed samples: the same in every task."""
    if not _in_all(layout.folders, names.LABELS):
        return
    shape = layout.files[names.REPRESENTATIONS][0] if names.REPRESENTATIONS in layout.files else None
    for place in layout.folders:
        file = place / names.LABELS
        stored = open_array(file)
        if stored.ndim != 3 or stored.shape[2] != layout.repeats or (shape and stored.shape[:2] != shape[2:4]):
            sizes = f"eval={shape[2]}, S={shape[3]}" if shape else "eval, S"
            raise WaterjarError(f"{file} has shape {stored.shape}; expected ({sizes}, R={layout.repeats})")
        labels = check_labels(np.array(stored), layout.pairs.shape[-1], str(file))
        if layout.labels is None:
            layout.labels = labels
            if labels.dtype != stored.dtype:
                layout.notes.append(f"{names.LABELS}: whole numbers in {stored.dtype}, kept as {labels.dtype}")
        elif not np.array_equal(labels, layout.labels) or labels.dtype != layout.labels.dtype:
            raise WaterjarError(f"{file} is not that of task_000: a run has one set of samples, with one set of labels")


def _check_initial(layout: Layout, file: Path) -> None:
    if not file.exists():
        return
    stored = np.array(open_array(file))
    params = layout.files[names.WEIGHTS][0][2] if names.WEIGHTS in layout.files else int(np.prod(stored.shape[-1:]))
    shapes = ((params,), (layout.repeats, params))
    if stored.shape not in shapes or not stored.size:
        raise WaterjarError(f"{file} has shape {stored.shape}; expected {shapes[0]}, or {shapes[1]} with R first")
    layout.initial = np.ascontiguousarray(np.broadcast_to(stored, shapes[1]))
