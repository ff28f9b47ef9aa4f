"""A run as plain xarray, loaded when used: through the one reader, so that Zarr never opens a stranger's files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from waterjar.run.nodes import TEXT

if TYPE_CHECKING:
    from waterjar.run.reader import Run


class LazyArray(BackendArray):
    """An array on disk; indexing it reads the chunks that hold what is asked for."""

    def __init__(self, run: Run, key: str) -> None:
        node = run.nodes[key]
        self.run = run
        self.key = key
        self.shape = tuple(node["shape"])
        self.dtype = np.dtype(object if node["data_type"] == TEXT else node["data_type"])

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read what xarray asks for."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[int | slice, ...]) -> Any:
        region: list[tuple[int, int]] = []
        rest: list[int | slice] = []
        for part, size in zip(key, self.shape, strict=True):
            if isinstance(part, slice):
                places = range(*part.indices(size))
                low, high = (min(places[0], places[-1]), max(places[0], places[-1]) + 1) if places else (0, 0)
                rest.append(slice(None, None, part.step))
            else:
                low = int(part) % size
                high = low + 1
                rest.append(0)
            region.append((low, high))
        return self.run.array(self.key, region)[tuple(rest)]


def lazy_tree(run: Run) -> xr.DataTree:
    """All groups of a run, labelled as xarray does when it opens one."""
    from waterjar.run.reader import read_group  # noqa: PLC0415 - which imports this module

    def lazy(key: str) -> Any:
        return indexing.LazilyIndexedArray(LazyArray(run, key))

    found = {"/": xr.Dataset(attrs=run.attributes)}
    for group, node in run.nodes.items():
        if node["node_type"] == "group":
            attributes = {name: value for name, value in node["attributes"].items() if name != "coordinates"}
            arrays, coordinates = read_group(run, group, read=lazy)
            found[group] = xr.Dataset(arrays, attrs=attributes).set_coords(coordinates)
    return xr.DataTree.from_dict(found)
