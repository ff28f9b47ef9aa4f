"""Results kept outside the sealed runs, and found again by what they were made of.

A metric's result is stale when a file of its runs, a setting, its version or that of the package that brings it has
changed: what is kept says it all. One file per family, unit and settings holds all its metrics; one that is new, or has
another version, is computed and put beside the others, which stay as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from pydantic import BaseModel

from waterjar.diagnose.array_file import packed, read_whole
from waterjar.diagnose.measuring import METRIC, Unit
from waterjar.diagnose.registry import Family, Metric
from waterjar.diagnose.settings import dump
from waterjar.errors import WaterjarError
from waterjar.run.annotations import FILE as ANNOTATIONS
from waterjar.run.disk import write_file
from waterjar.run.shelf import PartError
from waterjar.run.store import PRIVATE

FOLDER = ".waterjar/diagnostics"
_META = "__meta__"
_PARTS = f"{FOLDER}/parts"
_OF_THE_UNIT, _OF_OTHERS = 7 * 86400.0, 30 * 86400.0
"""Seconds after which pieces of an interrupted measurement are given up."""
_FORMAT = 2
_BESIDE = ("lock", Path(ANNOTATIONS).name)
"""Files of a run's private folder that are none of what it recorded; annotations count by what they say."""


def fingerprint(run: Path) -> str:
    """Changes when any file of a run does: names, sizes and times of change. Cheap enough for 1,000 runs.

    Contents are not read: whether they still are what was sealed is for `verify` to say.
    """
    digest = hashlib.sha256()
    for place, entry in _files_below(str(run), "."):
        if place == PRIVATE and (entry.name in _BESIDE or entry.name.startswith("draft-")):
            continue  # of who writes, or beside the run: not of what was written
        try:
            stat = entry.stat(follow_symlinks=False)  # a link itself, not what it leads to: a run's files are none
        except FileNotFoundError:  # a live run: renamed since the folder was read, and changed in any case
            continue
        # the time of the inode too: that of the contents can be set back
        marks = f"{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_ctime_ns}"
        digest.update(f"{place}/{entry.name}\0{marks}\n".encode())
    return digest.hexdigest()


def _files_below(folder: str, place: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(place of its folder inside the run, file), in order; a folder that is gone or closed has none, as for os.walk.

    A link to a folder is not followed, and counts for nothing.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    folders = []
    for entry in entries:
        if not _is_folder(entry):
            yield place, entry
        elif not entry.is_symlink():
            folders.append(entry)
    for entry in folders:
        yield from _files_below(entry.path, entry.name if place == "." else f"{place}/{entry.name}")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one; one that leads nowhere is a file."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def cached(
    family: Family,
    unit: Unit,
    runs: Mapping[str, str],
    settings: BaseModel,
    folder: Path,
    compute: Callable[[list[Metric], xr.Dataset | None], xr.Dataset],
    *,
    fresh: bool = False,
) -> tuple[xr.Dataset, str]:
    """The result of a unit and where it came from: `cached`, `new`, or why something was computed again.

    `runs` has the fingerprints of the unit's runs by name, `folder` is the directory above them. `compute` is called
    with the metrics that are wanted and what is there of the others. A refusal (a WaterjarError) is kept like a result;
    what a metric from outside fails with is not, nor does it cost what is kept: its package may be put right, or go.
    """
    made_of = _made_of(family, unit, runs)
    tag = hashlib.sha256(json.dumps([unit.name, dump(settings)], sort_keys=True).encode()).hexdigest()[:16]
    key = f"{FOLDER}/{family.name}-{tag}.npz"
    before, found = (None, None) if fresh else _read(folder / key)
    why = _difference(before, made_of)
    stale, gone = list(family.metrics.values()), False
    if before is None or why:
        found = None
    else:
        gone = not before["metrics"].keys() <= family.metrics.keys()
        new = [m for m in stale if before["metrics"].get(m.name) != m.edition]
        if found is not None or not new:  # a refusal has nothing of the others
            stale = new
    if before is not None and not why and not stale and not (gone and found is not None):
        if found is None:
            raise WaterjarError(before["refused"])
        if family.in_pieces:
            _give_up_old_pieces(family, unit.name, folder)
        return found, "cached"
    try:
        result = compute(stale, found)
    except PartError:
        raise
    except WaterjarError as error:
        with contextlib.suppress(WaterjarError):
            write_file(folder / key, _pack(xr.Dataset(), {**made_of, "refused": str(error)}), sync=False)
        raise
    if found is not None:
        names = _few([metric.name for metric in stale])
        why = f"a metric is new, or has another version: {names}" if stale else "a metric is gone"
    try:
        write_file(folder / key, _pack(result, made_of), sync=False)
    except WaterjarError:  # a full or read-only disk costs the second call its speed, nothing else
        return result, why or "not kept: the study's directory cannot be written"
    if family.in_pieces:
        _give_up_old_pieces(family, unit.name, folder)
    return result, why or "new"


def piece_key(family: Family, unit: Unit, runs: Mapping[str, str], settings: BaseModel) -> str:
    """A name for the pieces of a result in the making: another one whenever the result would be stale."""
    text = json.dumps([family.name, unit.name, dump(settings), _made_of(family, unit, runs)], sort_keys=True)
    return _of_unit(family, unit.name) + hashlib.sha256(text.encode()).hexdigest()[:24]


def _of_unit(family: Family, unit: str) -> str:
    return f"{family.name}-{hashlib.sha256(unit.encode()).hexdigest()[:12]}-"


def _give_up_old_pieces(family: Family, unit: str, folder: Path) -> None:
    """Pieces of measurements that were stopped, of other settings or runs, and never taken up again."""
    now = time.time()
    with contextlib.suppress(OSError):  # none were ever kept, or another process is at it
        for place in list((folder / _PARTS).iterdir()):
            limit = _OF_THE_UNIT if place.name.startswith(_of_unit(family, unit)) else _OF_OTHERS
            if now - place.stat().st_mtime > limit:  # a folder's time is that of its last piece
                shutil.rmtree(place, ignore_errors=True)


def _made_of(family: Family, unit: Unit, runs: Mapping[str, str]) -> dict[str, Any]:
    beside = [unit.title, unit.note, "" if unit.baseline is None else unit.baseline.title] if family.compared else []
    metrics = {name: metric.edition for name, metric in family.metrics.items()}
    return {"format": _FORMAT, "version": family.version, "beside": beside, "runs": dict(runs), "metrics": metrics}


def _difference(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """Why all of a stored result is stale; empty if it is not, or if there is none."""
    if before is None:
        return ""
    if before.get("format") != now["format"]:
        return "waterjar changed how results are kept"
    if before["version"] != now["version"]:
        return "the family has another version"
    old, new = before["runs"], now["runs"]
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    parts = {"changed": changed, "new": sorted(new.keys() - old.keys()), "gone": sorted(old.keys() - new.keys())}
    told = "; ".join(f"{word}: {_few(names)}" for word, names in parts.items() if names)
    if not told and before["beside"] != now["beside"]:
        return "the cell or its baseline goes by another name"
    return told


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _pack(dataset: xr.Dataset, made_of: Mapping[str, Any]) -> bytes:
    """A Dataset as npz: arrays as they are, names, dims and attributes as JSON. Nothing is pickled."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    variables: dict[str, Any] = {}
    for i, (name, item) in enumerate(dataset.variables.items()):
        values = np.asarray(item.values)
        arrays[str(i)] = values.astype(str) if values.dtype.kind == "O" else values
        about = {"dims": item.dims, "attrs": item.attrs, "metric": item.encoding.get(METRIC)}
        variables[str(name)] = {**about, "coord": name in dataset.coords}
    meta = {"made_of": made_of, "variables": variables, "attrs": dataset.attrs}
    arrays[_META] = np.frombuffer(json.dumps(meta, default=_plain).encode(), np.uint8)
    return packed(arrays)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} in an attribute of a result")


def _read(file: Path) -> tuple[dict[str, Any] | None, xr.Dataset | None]:
    """What a stored result was made of, and the result; a file that is damaged, or is no result, counts as none."""
    stored = read_whole(file)
    if stored is None:
        return None, None
    try:
        meta = json.loads(stored[_META].tobytes())
        made_of = meta["made_of"]
        if made_of.get("format") != _FORMAT:
            return {"format": made_of.get("format")}, None
        if not all(isinstance(made_of[key], dict) for key in ("runs", "metrics")) or "beside" not in made_of:
            return None, None
        made_of["version"]
        if isinstance(made_of.get("refused"), str):
            return made_of, None
        parts: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for i, (name, about) in enumerate(meta["variables"].items()):
            values = stored[str(i)]
            if values.dtype.kind not in "fiubU" or not all(isinstance(dim, str) for dim in about["dims"]):
                return None, None
            values = values.astype(object) if values.dtype.kind == "U" else values
            parts[about["coord"]][name] = (tuple(about["dims"]), values, about["attrs"], {METRIC: about["metric"]})
        found = xr.Dataset(*parts, attrs=meta["attrs"])
        return (made_of, found) if parts[0] and "repeat" in found.dims else (None, None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError):
        return None, None
