"""Opening a run: lazily, labelled, and while it is being written."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterjar.errors import unknown_name
from waterjar.run.codec import Json
from waterjar.run.root import read_array, read_root
from waterjar.run.seal import read_root_hash

if TYPE_CHECKING:
    import xarray as xr


class Run:
    """A recorded run. `run["performance"]` is an xarray.Dataset; `run.tree` is all of it, lazily."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._root = read_root(path)

    @property
    def attributes(self) -> Json:
        """The attributes of the root."""
        return self._root["attributes"]  # type: ignore[no-any-return]

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

    @property
    def root_hash(self) -> str | None:
        """The root hash, if sealed. `waterjar verify` tells whether it holds."""
        return read_root_hash(self.path) if self.status == "sealed" else None

    @property
    def root(self) -> Json:
        """The root metadata, as of opening."""
        return self._root

    @property
    def nodes(self) -> Json:
        """Path -> metadata of every group and array."""
        return self._root["consolidated_metadata"]["metadata"]  # type: ignore[no-any-return]

    @cached_property
    def groups(self) -> list[str]:
        """Paths of the groups that hold arrays."""
        return sorted({key.rpartition("/")[0] for key, node in self.nodes.items() if node["node_type"] == "array"})

    @cached_property
    def tree(self) -> xr.DataTree:
        """The whole run as plain xarray, loaded when used."""
        import xarray as xr  # noqa: PLC0415 - a second that `waterjar --help` must not pay

        return xr.open_datatree(self.path, engine="zarr")

    def __getitem__(self, group: str) -> xr.Dataset:
        """One group as a Dataset, loaded when used."""
        if group not in self.groups:
            raise unknown_name(f"{self.path}: group", group, self.groups)
        return self.tree[group].to_dataset()

    def load(self, group: str) -> xr.Dataset:
        """One group as a Dataset in memory, read directly: twenty times faster for small ones."""
        if group not in self.groups:
            raise unknown_name(f"{self.path}: group", group, self.groups)
        return to_dataset(*read_group(self.path, self._root, group))

    def __repr__(self) -> str:
        """Say which run this is and what it holds."""
        seeds = ", ".join(map(str, self.seeds))
        return (
            f"<waterjar.Run {self.run_id} ({self.status}) at {self.path}\n"
            f"  seeds {seeds}; last step {self.last_step}; groups {', '.join(self.groups) or 'none'}>"
        )


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open the run at `path`; it may still be written, then it shows every step complete by now."""
    return Run(Path(path))


Arrays = dict[str, tuple[tuple[str, ...], Any, Json]]
"""name -> (dims, values, attributes): a group in memory, before xarray."""


def read_group(path: Path, root: Json, group: str, only: Collection[str] | None = None) -> tuple[Arrays, set[str]]:
    """Read every array of a group into memory, or `only` some; also the names of those that are coordinates."""
    nodes = root["consolidated_metadata"]["metadata"]
    arrays: Arrays = {}
    for key, node in nodes.items():
        parent, _, name = key.rpartition("/")
        if parent == group and node["node_type"] == "array" and (only is None or name in only):
            arrays[name] = (tuple(node["dimension_names"]), read_array(path, key, node), node["attributes"])
    listed = set(nodes[group]["attributes"].get("coordinates", "").split())
    return arrays, {name for name, (dims, _, _) in arrays.items() if name in listed or dims == (name,)}


def to_dataset(arrays: Arrays, coordinates: set[str]) -> xr.Dataset:
    """Label arrays as xarray does when it opens the run."""
    import xarray as xr  # noqa: PLC0415 - a second that `waterjar --help` must not pay

    return xr.Dataset(
        {name: value for name, value in arrays.items() if name not in coordinates},
        {name: value for name, value in arrays.items() if name in coordinates},
    )
