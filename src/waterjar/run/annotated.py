"""A run as its annotations complete it: what was recorded stays, what is missing is filled in.

Every reader goes through `Run`, and `Run` through here: attributes, metadata and arrays of a run that was annotated are
those of one that had recorded the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.annotations import AnnotationsError
from waterjar.run.codec import Json, Storage, array_metadata, group_metadata
from waterjar.run.root import Region
from waterjar.run.schema import GROUPS

_LABEL = "probe_samples/label"
_VARIABLE = GROUPS["probe_samples"]["label"]
_ROUNDED = 0.02
"""Share by which a chance may be off 1 / classes, as 0.33 of three is."""
_SNAPSHOTS = ("features", "attention", "attribution", "streams", "probe_samples")


class Unfit(WaterjarError):
    """Annotations and a run do not go together."""


class Annotated:
    """The attributes, nodes and arrays of a run, with its annotations."""

    def __init__(self, path: Path, root: Json, entries: Mapping[str, Any]) -> None:
        own: Json = root["attributes"]
        self.tasks = tasks_of_sets(own, entries)
        names = own.get("classes") or entries.get("classes")
        self.attributes: Json = {**own, "eval_sets": self.tasks, "classes": names}
        chance = chance_of(own["tasks"], entries.get("chance"))
        if chance is not None:
            self.attributes["chance"] = chance
        self.nodes: Json = dict(root["consolidated_metadata"]["metadata"])
        self._arrays: dict[str, NDArray[Any]] = {}
        try:
            if names and not own.get("classes"):
                self._name_classes(names)
            if "probe_labels" in entries and _LABEL not in self.nodes:
                self._label_samples(entries["probe_labels"])
        except Unfit as error:
            raise AnnotationsError(
                path, f"{path}: its annotations do not fit: {error}. 'waterjar annotate' puts them right"
            ) from None

    def array(self, key: str, region: Region | None) -> NDArray[Any] | None:
        """An array that is not as it was recorded; None of all others."""
        found = self._arrays.get(key)
        if found is None or region is None:
            return found
        return found[tuple(slice(*part) for part in region)]

    def is_tasks(self, key: str) -> bool:
        """Whether an array says which task every eval set belongs to: it may have more of them than recorded."""
        node = self.nodes.get(key, {})
        return key.endswith("/eval_task") and node.get("dimension_names") == ["eval_set"] and key not in self._arrays

    def filled_in(self, recorded: NDArray[Any], sets: NDArray[Any]) -> NDArray[Any]:
        """The tasks of eval sets: those recorded, and where none is the one that was told."""
        known = [self.tasks.get(str(name), -1) for name in sets]
        return np.where(recorded < 0, np.asarray(known, recorded.dtype), recorded)

    def _name_classes(self, names: list[str]) -> None:
        for key, node in list(self.nodes.items()):
            if node["node_type"] == "array" and "class" in node["dimension_names"]:
                size = node["shape"][node["dimension_names"].index("class")]
                if size != len(names):
                    raise Unfit(f"classes has {len(names)} names, {key} has {size} classes")
                if key.endswith("/class"):
                    self._put(key, np.array(names, object), ("class",), node["attributes"])

    def _label_samples(self, given: Mapping[str, Any]) -> None:
        sets, repeats = self.attributes.get("probe_sets") or [], len(self.attributes["seeds"])
        shape = samples_of(self.nodes)
        if shape is None:  # nothing of this run has samples that could have labels
            return
        labels = labels_of(given, sets, repeats, shape)
        group = "probe_samples"
        if group not in self.nodes:
            self.nodes[group] = group_metadata({"coordinates": "eval_task seed"})
            of_sets = [self.tasks[name] for name in sets]
            columns: dict[str, tuple[list[Any], str, str]] = {
                "eval_set": (sets, "eval_set", "evaluation set"),
                "eval_task": (of_sets, "eval_set", "task the set belongs to, -1 for none"),
                "repeat": (list(range(repeats)), "repeat", "repeat"),
                "seed": (self.attributes["seeds"], "repeat", "seed of the repeat"),
            }
            for name, (values, dim, long_name) in columns.items():
                array = np.asarray(values, object if name == "eval_set" else np.int64)
                self._put(f"{group}/{name}", array, (dim,), {"long_name": long_name})
        self._put(_LABEL, labels, _VARIABLE.dims, _VARIABLE.attributes)

    def _put(self, key: str, values: NDArray[Any], dims: tuple[str, ...], about: Json) -> None:
        kind = None if values.dtype.kind == "O" else values.dtype
        self._arrays[key] = values
        self.nodes[key] = array_metadata(values.shape, values.shape, kind, dims, dict(about), Storage())


def tasks_of_sets(attributes: Json, entries: Mapping[str, Any]) -> dict[str, int]:
    """The task of every eval set: as recorded, else as told. A task, or set, that a run does not have is none of it."""
    found = dict(attributes["eval_sets"])
    tasks: list[str] = attributes["tasks"]
    for name, task in entries.get("eval_task", {}).items():
        place = tasks.index(task) if task in tasks else task if type(task) is int and 0 <= task < len(tasks) else -1
        if found.get(name) == -1:
            found[name] = place
    return found


def chance_of(tasks: list[str], given: Any) -> float | list[float] | None:
    """Chance as settings have it, a number or one for every task; None where it was not told of all of them."""
    if not isinstance(given, Mapping):
        return given  # type: ignore[no-any-return]
    return [given[task] for task in tasks] if set(tasks) <= given.keys() else None


def other_chance(attributes: Mapping[str, Any]) -> str:
    """A sentence where chance was told to be another than that of the classes; it counts, for there are reasons to.

    >>> other_chance({"chance": 0.2, "classes": list("0123456789")})
    'chance counts as 0.2, as annotated; guessing among the 10 classes of the run gets 0.1'
    """
    told, classes = attributes.get("chance"), attributes.get("classes")
    numbers = told if isinstance(told, list) else [] if told is None else [told]
    if not classes or all(abs(one * len(classes) - 1) <= _ROUNDED for one in numbers):
        return ""
    shown = ", ".join(f"{one:g}" for one in dict.fromkeys(numbers))
    return (
        f"chance counts as {shown}, as annotated; guessing among the {len(classes)} classes of the run gets "
        f"{1 / len(classes):.3g}"
    )


def samples_of(nodes: Json) -> tuple[int, int] | None:
    """How many eval sets, and samples of each, the snapshots of a run have; None where there are none."""
    for key, node in nodes.items():
        if key.split("/")[0] in _SNAPSHOTS and node["node_type"] == "array":
            sizes = dict(zip(node["dimension_names"], node["shape"], strict=True))
            if {"eval_set", "sample"} <= sizes.keys():
                return sizes["eval_set"], sizes["sample"]
    return None


def labels_of(given: Mapping[str, Any], sets: list[str], repeats: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Labels (repeat, eval_set, sample) as a run records them."""
    missing = [name for name in sets if name not in given]
    if missing or len(sets) != shape[0]:
        raise Unfit(f"probe_labels has those of {', '.join(given)}: expected those of {', '.join(sets)}")
    parts = []
    for name in sets:
        rows = np.asarray(given[name], np.int64) if _is_even(given[name]) else np.empty(0, np.int64)
        if rows.shape not in ((shape[1],), (repeats, shape[1])):
            raise Unfit(
                f"probe_labels of '{name}' are of shape {rows.shape if rows.size else 'uneven'}: expected "
                f"({shape[1]},), one for each sample, or ({repeats}, {shape[1]}), one for each repeat and sample"
            )
        parts.append(np.broadcast_to(rows, (repeats, shape[1])))
    return np.stack(parts, axis=1)


def _is_even(rows: list[Any]) -> bool:
    return not rows or not isinstance(rows[0], list) or len({len(row) for row in rows}) == 1
