"""Going on with a run: the tree is rebuilt from the root, cut to the checkpoint's step, and tidied."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run import ledger
from waterjar.run.checks import damage, row_checksums
from waterjar.run.codec import Json, Storage
from waterjar.run.coordinates import Progress, is_progress
from waterjar.run.growing import GrowingGroup, Series
from waterjar.run.root import DamagedError, read_array, read_root
from waterjar.run.schema import GROWING, SCHEMA_VERSION, STEP_COORDINATES
from waterjar.run.store import MANIFEST, ROOT, ROOT_HASH, SYNCED, LocalStore, sha256
from waterjar.run.writer import TreeWriter, expected_files

_LOG = logging.getLogger(__name__)
_MUST_AGREE = ("run_id", "seeds", "tasks", "eval_sets", "probe_sets", "classes")
_MAY_BE_ABSENT = ("labels", "source")


def restore(
    store: LocalStore, storage: Storage, identity: dict[str, Any], resume_at: int | None
) -> tuple[TreeWriter, Progress]:
    """Rebuild the writer of an open run, with nothing behind step `resume_at`."""
    _mend(store)
    root = read_root(store.path)
    attributes = root["attributes"]
    if attributes["status"] == "sealed":
        ledger.ensure(store.path, attributes["run_id"])
        raise WaterjarError(f"{store.path} is sealed: it is complete and cannot be changed. Record to another path")
    if attributes["waterjar_schema"] != SCHEMA_VERSION:
        raise WaterjarError(
            f"{store.path} was begun by an earlier waterjar (schema {attributes['waterjar_schema']}, this one writes "
            f"{SCHEMA_VERSION}): it can be read, not resumed. Record it anew to another path"
        )
    faults = [key for key in _MUST_AGREE if key not in attributes]
    faults += [] if is_progress(attributes["progress"]) else ["progress"]
    if faults:
        raise DamagedError(store.path, f"{store.path} is damaged: its {ROOT} lacks a valid {', '.join(faults)}")
    _check_same(store.path, attributes, identity)
    broken = damage(store.path, root)
    if broken:
        listing = ", ".join(f"{what} {file}" for what, file in broken[:5])
        raise WaterjarError(f"{store.path} is damaged and cannot be resumed: {listing}. Record it anew to another path")
    recorded = attributes.get("storage", {})
    if recorded.get("step_dtype", storage.step_dtype) != storage.step_dtype:
        raise WaterjarError(
            f"{store.path} was recorded with step_dtype {recorded['step_dtype']}, not {storage.step_dtype}: "
            "resume with the former"
        )
    attributes.pop("checksum", None)
    attributes["identity"] = identity["identity"]  # which runs of before this was recorded lack
    writer = TreeWriter(store, storage, attributes)
    writer.nodes = root["consolidated_metadata"]["metadata"]
    _rebuild_groups(writer)
    progress = attributes["progress"] if resume_at is None else _progress_at(writer, resume_at)
    for group in writer.groups.values():
        keep = group.length if resume_at is None else int(np.sum(_steps(writer, group) <= resume_at))
        group.set_length(keep)
        for series in group.series.values():
            if series.is_raw:
                series.crcs = row_checksums(store.path, series.key, series.metadata, keep)
    attributes["progress"] = progress
    attributes["status"] = "recording"
    for stale in (MANIFEST, ROOT_HASH):  # of a seal that was interrupted
        store.delete(stale)
    writer.commit()
    for group in writer.groups.values():
        for series in group.series.values():
            series.read_tail(group.length)
    writer.tidy()
    for key in expected_files(writer.nodes) - set(writer.digests):
        writer.digests[key] = sha256(store.get(key))
    return writer, progress


def _check_same(path: Path, attributes: Json, identity: dict[str, Any]) -> None:
    """Refuse to go on with another run than the one that was begun."""
    if _differ_by_name_alone(attributes, identity):
        _LOG.warning(
            "%s was begun when eval sets with the names of tasks belonged to none, and goes on like that: "
            "'waterjar annotate' tells which task they belong to",
            path,
        )
        identity["eval_sets"] = dict(attributes["eval_sets"])
    for key in (*_MUST_AGREE, *_MAY_BE_ABSENT):
        if attributes.get(key) != identity.get(key):
            raise WaterjarError(
                f"{path} is another run: its {key} is {attributes.get(key)!r}, not {identity.get(key)!r}. "
                "Resume with what it was started with, or record to another path"
            )


def _differ_by_name_alone(recorded: Json, now: dict[str, Any]) -> bool:
    """Whether eval sets that belonged to no task when the run was begun belong to those of the same name now."""
    before, after, tasks = recorded["eval_sets"], now["eval_sets"], now["tasks"]
    if before == after or before.keys() != after.keys() or recorded["tasks"] != tasks:
        return False
    return all(before[name] == place or (before[name] == -1 and name == tasks[place]) for name, place in after.items())


def mend(path: Path) -> None:
    """After a power cut: put back the last root that was on the disk with all that it speaks of.

    A run whose present root holds is left alone, and so is one that another process writes.
    """
    store = LocalStore(path)
    if (path / SYNCED).is_file():
        with contextlib.suppress(WaterjarError):
            store.lock()
            try:
                _mend(store)
            finally:
                store.unlock()


def _mend(store: LocalStore) -> None:
    """The same, under a lock. A root may have reached the disk before what it speaks of, or a name before its root."""
    if not (store.path / SYNCED).is_file():
        return
    with contextlib.suppress(DamagedError):
        if not _broken(store.path, read_root(store.path)):
            return
    kept = read_root(store.path, SYNCED)
    if _broken(store.path, kept):
        return
    step = kept["attributes"]["progress"]["step"]
    _LOG.warning("%s: what was recorded after step %d did not reach the disk before a power cut", store.path, step)
    store.put_root(store.get(SYNCED), sync=True)


def _broken(path: Path, root: Json) -> list[tuple[str, str]]:
    return [] if root["attributes"]["status"] == "sealed" else damage(path, root)


def _rebuild_groups(writer: TreeWriter) -> None:
    for path, node in writer.nodes.items():
        if node["node_type"] != "array" or not node["dimension_names"] or node["dimension_names"][0] not in GROWING:
            continue
        name, _, key = path.rpartition("/")
        dim = node["dimension_names"][0]
        group = writer.groups.setdefault((name, dim), GrowingGroup(name, dim))
        group.length = node["shape"][0]
        group.series[key] = Series(path, node, writer.store, writer.digests)


def _steps(writer: TreeWriter, group: GrowingGroup) -> Any:
    key = "event_step" if group.dim == "event" else group.dim
    return read_array(writer.store.path, f"{group.name}/{key}", group.series[key].metadata)


def _progress_at(writer: TreeWriter, step: int) -> Progress:
    if step == -1:
        return {"step": -1}
    for group in writer.groups.values():
        found = np.flatnonzero(_steps(writer, group) == step)
        if group.dim == "event" or not len(found):
            continue
        progress: Json = {"step": step}
        for key in STEP_COORDINATES:
            value = read_array(writer.store.path, f"{group.name}/{key}", group.series[key].metadata)[found[0]]
            progress[key] = value if isinstance(value, str) else value.item()
        return progress
    last = writer.attributes["progress"]["step"]
    raise WaterjarError(f"resume_at={step} is no step of {writer.store.path}: the last complete one is {last}")
