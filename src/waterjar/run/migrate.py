"""A sealed run of an earlier schema, copied into the present one. The old run stays as it is, and is named.

Numbers are copied to the bit. What schema 1 had otherwise: counts of patched images stood in /events, probes in arrays
over moments, streams without their evaluation set; steps did not say their visit, nor events when they happened.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run import ledger, seal
from waterjar.run.codec import Json, storage_of
from waterjar.run.copies import check_annotations, clear, copy_annotations, copy_at
from waterjar.run.disk import as_path
from waterjar.run.reader import Run, open_run
from waterjar.run.root import Region, read_array
from waterjar.run.rows import Row
from waterjar.run.schema import GROWING, REASON, SCHEMA_VERSION, STEP, STEP_COORDINATES, Variable
from waterjar.run.store import ROOT, LocalStore
from waterjar.run.study import create_study, open_study
from waterjar.run.writer import TreeWriter

Array = NDArray[Any]
Steps = dict[int, Json]
"""Label of a step -> its coordinates, its visit among them."""
Sources = dict[str, Callable[[], Row]]
"""Variable -> what reads its row."""

_PROBE_STEP, _PROBE_WHY = "_step", "_why"
_DROPPED = ("checksum", "checks", "seal")


class Copied(NamedTuple):
    """A run of an earlier schema, its copy, and whether that was made just now or was there already."""

    old: Run
    new: Run
    is_new: bool


def migrate(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Run:
    """Copy a sealed run of schema 1 to `target` in the present schema, sealed anew; `migrated_from` names the old.

    Annotations come along. A finished copy of this very run is returned as it is; one that was begun is made anew.
    """
    return _migrated(open_run(source), as_path(target)).new


def _migrated(given: Run, place: Path) -> Copied:
    old = given.recorded  # annotations are copied as what they are
    version = old.attributes["waterjar_schema"]
    if version == SCHEMA_VERSION:
        raise WaterjarError(f"{old.path} is of schema {version} already: there is nothing to migrate")
    state = seal.verify(old.path, old).state
    if state != "sealed" or old.root_hash is None:
        raise WaterjarError(f"{old.path} is {state}: only a sealed run is migrated, whose numbers are those recorded")
    there = copy_at(old, place)
    if there is None:
        store = LocalStore(place)
        store.lock()
        try:
            there = copy_at(old, place)  # again: another process may have been quicker
            if there is None:
                clear(store)
                ledger.append(place, old.run_id, _sealed(old, store, version))
                return Copied(old, open_run(place), True)
        finally:
            store.unlock()
    copy_annotations(old.path, place)
    return Copied(old, there, False)


def _sealed(old: Run, store: LocalStore, version: int) -> str:
    """Write the copy, from its root, which says what it is a copy of, to its seal."""
    writer = _writer(old, store, version)
    writer.commit()
    _copy(old, writer)
    _compare(old, writer)
    copy_annotations(old.path, store.path)
    writer.attributes["status"] = "sealed"
    return seal.close(store, writer)


def migrate_all(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Iterator[Copied]:
    """Migrate a run, or all sealed runs of a study with its declaration and annotations; each as it is done.

    Runs that are not sealed, or of the present schema already, and places that hold something else are an error
    before anything is written. What an earlier call has finished there stays, and what it has begun is made anew.
    """
    folder, place = as_path(source), as_path(target)
    if (folder / ROOT).exists():
        yield _migrated(open_run(folder), place)
        return
    study = open_study(folder)
    runs = list(study)
    if not runs:
        raise WaterjarError(f"{folder} holds no runs: there is nothing to migrate")
    for run in runs:
        if run.status != "sealed" or run.attributes["waterjar_schema"] == SCHEMA_VERSION:
            schema = run.attributes["waterjar_schema"]
            raise WaterjarError(
                f"{run.path} is {run.status}, of schema {schema}: expected sealed runs of an earlier one"
            )
        copy_at(run, place / run.path.name)
    check_annotations(folder, place)
    create_study(place, study.declaration, runs=study.declared)
    copy_annotations(folder, place)
    for run in runs:
        yield _migrated(run, place / run.path.name)


def _writer(old: Run, store: LocalStore, version: int) -> TreeWriter:
    attributes = {key: value for key, value in old.attributes.items() if key not in _DROPPED}
    attributes["waterjar_schema"] = SCHEMA_VERSION
    attributes["status"] = "recording"
    attributes["migrated_from"] = {"run_id": old.run_id, "root_hash": str(old.root_hash), "schema": version}
    attributes.setdefault("probe_sets", list(attributes["eval_sets"]))
    attributes.setdefault("classes", None)
    known = {key: value for key, value in attributes.get("storage", {}).items() if key != "sync"}
    return TreeWriter(store, storage_of({**known, "sync": False}), attributes)


def _copy(old: Run, writer: TreeWriter) -> None:
    steps = _steps(old)
    progress = writer.attributes["progress"]
    if progress["step"] in steps:
        writer.attributes["progress"] = {**progress, "visit": steps[progress["step"]]["visit"]}
    for (group, dim), rows in _tables(old).items():
        for label, sources in sorted(rows.items()):
            with writer.transaction():
                writer.append(group, dim, steps[label], {name: read() for name, read in sources.items()})
    for event in _events(old):
        with writer.transaction():
            writer.append("events", "event", event, {})
    with writer.transaction():
        for key, node in old.nodes.items():
            group, _, name = key.rpartition("/")
            if _is_static(node) and key not in writer.nodes and not _is_probe(old, key):
                about = node["attributes"]
                writer.put_static(group, name, old.array(key), tuple(node["dimension_names"]), about, is_label=True)
        for key, node in old.nodes.items():
            if node["node_type"] == "group" and key in writer.nodes:
                listed = node["attributes"].get("coordinates", "").split()
                writer.mark_coordinates(key, [name for name in listed if f"{key}/{name}" in writer.nodes])


def _is_static(node: Json) -> bool:
    dims = node.get("dimension_names")
    return node["node_type"] == "array" and not (dims and dims[0] in GROWING)


def _is_probe(old: Run, key: str) -> bool:
    """Whether an array is what a probe found, or its steps and reasons."""
    if not key.startswith("probes/"):
        return False
    base = key.removesuffix(_PROBE_STEP).removesuffix(_PROBE_WHY)
    return base + _PROBE_STEP in old.nodes


def _steps(old: Run) -> Steps:
    """The coordinates of every step that any group has; another task than before begins another visit."""
    found: Steps = {}
    for group, dim in _growing(old):
        columns = [old.array(f"{group}/{name}").tolist() for name in (dim, *_EARLIER_COORDINATES)]
        for label, *row in zip(*columns, strict=True):
            found.setdefault(label, dict(zip(_EARLIER_COORDINATES, row, strict=True)))
    visit, task = -1, None
    for label in sorted(found):
        visit += found[label]["train_task"] != task
        task = found[label]["train_task"]
        found[label] |= {"step": label, "visit": visit}
    return found


_EARLIER_COORDINATES = [name for name in STEP_COORDINATES if name != "visit"]


def _growing(old: Run) -> list[tuple[str, str]]:
    """Groups that grow by steps or snapshots, with that dimension."""
    parts = (key.rpartition("/") for key in old.nodes)
    return [(group, name) for group, _, name in parts if name in ("step", "snapshot")]


def _tables(old: Run) -> dict[tuple[str, str], dict[int, Sources]]:
    """(group, dimension) of the new run -> label of a step -> the rows of its variables, read when they are wanted."""
    found: dict[tuple[str, str], dict[int, Sources]] = {}
    for group, dim in _growing(old):
        labels = [int(label) for label in old.array(f"{group}/{dim}")]
        for key, node in old.nodes.items():
            parent, _, name = key.rpartition("/")
            grows = node["node_type"] == "array" and node["dimension_names"][:1] == [dim]
            if parent != group or not grows or name in (dim, *STEP_COORDINATES) or name.endswith(REASON):
                continue
            table = found.setdefault(("train" if key == "events/patched_images" else group, dim), {})
            for place, label in enumerate(labels):
                table.setdefault(label, {})[name] = functools.partial(_row, old, key, place)
    for key in old.nodes:
        if _is_probe(old, key) and not key.endswith((_PROBE_STEP, _PROBE_WHY)):
            found[key, "step"] = _probe_rows(old, key)
    return found


def _row(old: Run, key: str, place: int) -> Row:
    """One row of an array, and why values are missing."""
    node = old.nodes[key]
    dims = tuple(node["dimension_names"][1:])
    values = _slice(old.array, node, key, place)
    codes = _slice(old.array, old.nodes[key + REASON], key + REASON, place) if key + REASON in old.nodes else None
    if key.startswith("streams/"):
        values, dims = _by_eval_set(old, values, dims)
    variable = _variable(key, node, (node["dimension_names"][0], *dims))
    return Row(values, codes if codes is not None and codes.any() else None, dims, variable)


def _slice(read: Callable[[str, Region], Array], node: Json, key: str, place: int) -> Array:
    """One row alone: snapshots may be larger than memory together."""
    row: Array = read(key, [(place, place + 1), *((0, size) for size in node["shape"][1:])])
    return row[0]  # type: ignore[no-any-return]


def _variable(key: str, node: Json, dims: tuple[str, ...]) -> Variable:
    about = node["attributes"]
    words = (about.get(word, default) for word, default in (("long_name", key), ("units", "1"), ("direction", "none")))
    return Variable(dims, *words)


def _by_eval_set(old: Run, values: Array, dims: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Streams of schema 1 did not say of which evaluation set their samples are: it is known where there is one."""
    if len(old.attributes["probe_sets"]) != 1:
        raise WaterjarError(
            f"{old.path}: its streams do not say of which of {old.attributes['probe_sets']} they are: it stays as it is"
        )
    order = [dim for dim in ("repeat", "sample", "stream", "class") if dim in dims]
    moved = np.moveaxis(values, [dims.index(dim) for dim in order], range(len(order)))
    return np.expand_dims(moved, 1), (order[0], "eval_set", *order[1:])


def _probe_rows(old: Run, key: str) -> dict[int, Sources]:
    """What a probe found, (repeat, moment), by the step of each moment."""
    name, variable = key.partition("/")[2], _variable(key, old.nodes[key], STEP)
    values, labels = np.asarray(old.array(key), np.float64), old.array(key + _PROBE_STEP)[0]
    codes = old.array(key + _PROBE_WHY) if key + _PROBE_WHY in old.nodes else np.zeros(values.shape, np.uint8)

    def row(place: int) -> Row:
        why = codes[:, place] if codes[:, place].any() else None
        return Row(values[:, place].copy(), why, ("repeat",), variable)

    return {int(label): {name: functools.partial(row, place)} for place, label in enumerate(labels)}


def _events(old: Run) -> list[Json]:
    if "events/event" not in old.nodes:
        return []
    columns = (old.array(f"events/{name}").tolist() for name in ("event_step", "kind", "message"))
    unknown = {"time": np.nan, "event_repeat": -1, "level": "info"}
    return [
        {"event_step": step, **unknown, "kind": kind, "message": text}
        for step, kind, text in zip(*columns, strict=True)
    ]


def _compare(old: Run, writer: TreeWriter) -> None:
    """Every array that both have must be the same, read back from the disk and not from memory, row by row."""
    for key, node in old.nodes.items():
        new = writer.nodes.get(key, {})
        if node["node_type"] != "array" or node["dimension_names"] != new.get("dimension_names"):
            continue
        back = functools.partial(_read_back, writer, new)
        rows = node["shape"][0] if not _is_static(node) and len(node["shape"]) > 1 else None
        pairs = (
            [(old.array(key), back(key))]
            if rows is None
            else ((_slice(old.array, node, key, i), _slice(back, new, key, i)) for i in range(rows))
        )
        if not all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in pairs):
            raise WaterjarError(f"{key} did not come over as it was: {writer.store.path} is left unsealed")


def _read_back(writer: TreeWriter, node: Json, key: str, region: Region | None = None) -> Array:
    return read_array(writer.store.path, key, node, region=region)
