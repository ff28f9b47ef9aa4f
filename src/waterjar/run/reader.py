"""Opening a run: lazily, labelled, and while it is being written."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from waterjar.errors import unknown_name
from waterjar.run.annotated import Annotated
from waterjar.run.annotations import Annotations, annotations_of
from waterjar.run.codec import Json
from waterjar.run.disk import as_path
from waterjar.run.manifest import read_manifest, read_root_hash, root_line
from waterjar.run.notebook import FrontDoor, numbers_in_words, table
from waterjar.run.root import DamagedError, Region, read_array, root_and_digest
from waterjar.run.shown import shown_settings
from waterjar.run.store import MANIFEST, ROOT, ROOT_HASH, read_file

if TYPE_CHECKING:
    import xarray as xr

_STREAMS = ("streams", "probe_samples")
"""What a probe run recorded of the streams of its source, and the labels of the samples that they were asked."""
_OF_NODES = ("nodes", "groups", "tree")
"""What a run works out of its nodes, and keeps."""


class Run(FrontDoor):
    """A recorded run. `run["performance"]` is an xarray.Dataset; `run.tree` is all of it, lazily.

    What was annotated stands where it would if it had been recorded; `annotated=False` leaves it out.
    """

    def __init__(self, path: Path, *, annotated: bool = True) -> None:
        self.path = path
        self._root, self.root_digest = root_and_digest(path)
        self._owners: dict[str, Run] = {}
        self.annotations: Annotations | None = None
        """What was added beside its sealed bytes, or to all runs of its study, as of opening."""
        self._added: Annotated | None = None
        if annotated:
            self._complete()

    def _complete(self) -> None:
        """Read its annotations, and forget what rests on earlier ones."""
        self.annotations = annotations_of(self.path)
        entries = self.annotations.entries if self.annotations is not None else None
        self._added = None if entries is None else Annotated(self.path, self._root, entries)
        for name in _OF_NODES:
            self.__dict__.pop(name, None)

    @property
    def recorded(self) -> Run:
        """The same as it was recorded, without annotations."""
        if self.annotations is None:
            return self
        found = copy.copy(self)
        found.__dict__ = {k: v for k, v in self.__dict__.items() if k not in _OF_NODES}
        found.annotations = found._added = None
        return found

    def annotate(
        self,
        *,
        eval_task: Mapping[str, str | int] | None = None,
        chance: float | Mapping[str, float] | None = None,
        classes: Sequence[str] | None = None,
        probe_labels: ArrayLike | Mapping[str, ArrayLike] | None = None,
        note: str | None = None,
        remove: str | Collection[str] = (),
    ) -> Run:
        """Add what was forgotten while recording; nothing that was recorded changes (see `annotating.annotate`)."""
        from waterjar.run.annotating import annotate  # noqa: PLC0415 - not for reading

        annotate(
            self.path, [Run(self.path, annotated=False)], eval_task=eval_task, chance=chance, classes=classes,
            probe_labels=probe_labels, note=note, remove=remove,
        )  # fmt: skip
        self.reannotated()
        return self

    def reannotated(self) -> None:
        """Read the annotations anew, of the probe runs that are joined to it, too."""
        for run in (self, *{id(one): one for one in self._owners.values()}.values()):
            run._complete()

    @property
    def attributes(self) -> Json:
        """The attributes of the root; what it lacks is as annotated."""
        return self._root["attributes"] if self._added is None else self._added.attributes

    @property
    def run_id(self) -> str:
        """Hash of config, seeds, data and numerics."""
        return str(self.attributes["run_id"])

    @property
    def cell_id(self) -> str:
        """The same without seeds."""
        return str(self.attributes["cell_id"])

    @property
    def config(self) -> dict[str, Any]:
        """The resolved settings."""
        return dict(self.attributes["config"])

    @property
    def seeds(self) -> list[int]:
        """One seed per repeat."""
        return list(self.attributes["seeds"])

    @property
    def status(self) -> str:
        """One of recording, interrupted, sealed; as of opening."""
        return str(self.attributes["status"])

    @property
    def last_step(self) -> int:
        """The last complete step as of opening; -1 if there is none."""
        return int(self.attributes["progress"]["step"])

    @cached_property
    def root_hash(self) -> str | None:
        """The root hash, if sealed; a manifest that has changed since has none. `verify` tells whether all holds."""
        found = read_root_hash(self.path) if self.status == "sealed" else None
        if found is not None:
            self._check_manifest(found)
        return found

    def _check_manifest(self, root_hash: str) -> None:
        try:
            is_changed = read_file(self.path, ROOT_HASH) != root_line(root_hash)
        except OSError as error:
            raise DamagedError(self.path, f"{self.path} is damaged: its {ROOT_HASH}: {error.strerror}") from error
        if is_changed:
            raise DamagedError(self.path, f"{self.path} is damaged: its {MANIFEST} is not what was sealed")

    @cached_property
    def digests(self) -> dict[str, str] | None:
        """File -> SHA-256 that it was sealed with; None of an open run, and of one that has lost its manifest."""
        if self.status != "sealed" or not (self.path / MANIFEST).exists():
            return None
        try:
            root_hash, digests = read_manifest(self.path)
        except (OSError, ValueError) as error:
            raise DamagedError(self.path, f"{self.path} is damaged: its {MANIFEST}: {error}") from error
        self._check_manifest(root_hash)
        if self.root_digest != digests[ROOT]:
            raise DamagedError(self.path, f"{self.path} is damaged: its {ROOT} is not what was sealed")
        return digests

    def with_probes(self, others: Sequence[Run]) -> Run:
        """The same run with what probe runs recorded of it: /probes, and streams where it recorded none itself.

        Of a group that two of them have, nothing is joined: nobody could tell which of them counts.
        """
        if not others:
            return self
        joined = copy.copy(self)
        joined.__dict__ = {k: v for k, v in self.__dict__.items() if k not in _OF_NODES}
        twice = probed_by_several([self, *others])
        joined._owners = {
            key: other
            for other in others
            for key in other.nodes
            if key.split("/")[0] in joined_groups(self, other) and _joined_as(key) not in twice
        }
        return joined

    @property
    def probed_by(self) -> list[str]:
        """Names of the probe runs that are joined to it."""
        return list(dict.fromkeys(run.path.name for run in self._owners.values()))

    def recorder_of(self, group: str) -> str:
        """Which run has recorded a group, in words: this one, or a probe run that is joined to it."""
        owner = self._owners.get(group)
        return self.path.name if owner is None else f"{owner.path.name} (probe run of {self.path.name})"

    def array(self, key: str, region: Region | None = None) -> NDArray[Any]:
        """One array in memory, or a region of it, if its bytes are those that were sealed or recorded."""
        if key in self._owners:
            return self._owners[key].array(key, region)
        added = self._added.array(key, region) if self._added is not None else None
        if added is not None:
            return added
        checks = None if self.status == "sealed" else self.attributes.get("checks", {}).get(key)
        found = read_array(self.path, key, self.nodes[key], self.digests, region, checks)
        if self._added is not None and self._added.is_tasks(key):
            return self._added.filled_in(found, self.array(key.removesuffix("eval_task") + "eval_set", region))
        return found

    @property
    def root(self) -> Json:
        """The root metadata, as of opening."""
        return self._root

    @cached_property
    def nodes(self) -> Json:
        """Path -> metadata of every group and array."""
        own: Json = self._root["consolidated_metadata"]["metadata"] if self._added is None else self._added.nodes
        return {**own, **{key: run.nodes[key] for key, run in self._owners.items()}} if self._owners else own

    @cached_property
    def groups(self) -> list[str]:
        """Paths of the groups that hold arrays."""
        return sorted({key.rpartition("/")[0] for key, node in self.nodes.items() if node["node_type"] == "array"})

    @cached_property
    def tree(self) -> xr.DataTree:
        """The whole run as plain xarray, loaded when used."""
        from waterjar.run.lazy import lazy_tree  # noqa: PLC0415 - xarray: a second that `waterjar --help` must not pay

        return lazy_tree(self)

    def __getitem__(self, group: str) -> xr.Dataset:
        """One group as a Dataset, loaded when used."""
        if group not in self.groups:
            raise unknown_name(f"{self.path}: group", group, self.groups)
        return self.tree[group].to_dataset()

    def load(self, group: str) -> xr.Dataset:
        """One group as a Dataset in memory, read directly: twenty times faster for small ones."""
        if group not in self.groups:
            raise unknown_name(f"{self.path}: group", group, self.groups)
        import xarray as xr  # noqa: PLC0415 - a second that `waterjar --help` must not pay

        arrays, coordinates = read_group(self, group)
        return xr.Dataset(arrays).set_coords(coordinates)

    def row(self, key: str, position: int, repeats: slice = slice(None)) -> NDArray[Any]:
        """One snapshot (repeat, ...) of an array, of some repeats; only the chunks that hold it are read."""
        _, count, *inner = self.nodes[key]["shape"]
        begin, end, _ = repeats.indices(count)
        found: NDArray[Any] = self.array(key, [(position, position + 1), (begin, end), *((0, n) for n in inner)])[0]
        return found

    def __repr__(self) -> str:
        """Say which run this is and what it holds."""
        seeds = ", ".join(map(str, self.seeds))
        return (
            f"<waterjar.Run {self.run_id} ({self.status}) at {self.path}\n"
            f"  seeds {seeds}; last step {self.last_step}; groups {', '.join(self.groups) or 'none'}>"
        )

    def _repr_html_(self) -> str:
        """The same as a small table."""
        rows = [
            ("status", self.status),
            ("seeds", numbers_in_words(self.seeds)),
            ("tasks", ", ".join(map(str, self.attributes.get("tasks", ())))),
            ("evaluation sets", ", ".join(map(str, self.attributes.get("eval_sets", ())))),
            ("last step", self.last_step),
            ("recorded", ", ".join(self.groups) or "nothing yet"),
            *((key, value) for key, value in shown_settings(self.config).items()),
        ]
        return table(f"waterjar run {self.path.name}", (), rows, [str(self.path)])


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open the run at `path`; it may still be written, then it shows every step complete by now."""
    return Run(as_path(path))


def joined_groups(run: Run, other: Run) -> tuple[str, ...]:
    """The first parts of the groups that a probe run lends to its source: streams go with the labels of their samples.

    A source with streams or labels of its own keeps these: others would be of other samples.
    """
    own = any(group in run.nodes for group in _STREAMS)
    return ("probes",) if own or _STREAMS[0] not in other.nodes else ("probes", *_STREAMS)


def probed_by_several(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Group that is joined -> the runs that have it, of those that more than one of a run and its probe runs has."""
    found: dict[str, list[str]] = {}
    for run in runs:
        able = joined_groups(runs[0], run)
        for group in {_joined_as(key) for key in run.nodes if key.split("/")[0] in able and key != "probes"}:
            found.setdefault(group, []).append(run.path.name)
    return {group: names for group, names in sorted(found.items()) if len(names) > 1}


def _joined_as(key: str) -> str:
    """The group that is joined or left out as one: a probe, or all of streams and their labels."""
    first, *rest = key.split("/")
    return "/".join([first, *rest[:1]]) if first == "probes" else _STREAMS[0]


Arrays = dict[str, tuple[tuple[str, ...], Any, Json]]
"""name -> (dims, values, attributes): a group in memory, before xarray."""


def read_group(
    run: Run, group: str, only: Collection[str] | None = None, read: Callable[[str], Any] | None = None
) -> tuple[Arrays, set[str]]:
    """Every array of a group, or `only` some, in memory or as `read` has it; and which of them are coordinates."""
    arrays: Arrays = {}
    for key, node in run.nodes.items():
        parent, _, name = key.rpartition("/")
        if parent == group and node["node_type"] == "array" and (only is None or name in only):
            arrays[name] = (tuple(node["dimension_names"]), (read or run.array)(key), node["attributes"])
    listed = set(run.nodes[group]["attributes"].get("coordinates", "").split())
    return arrays, {name for name, (dims, _, _) in arrays.items() if name in listed or dims == (name,)}
