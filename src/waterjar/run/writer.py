"""The tree of a run in the making: groups, arrays, and the root that makes them visible together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.codec import Json, Storage, array_metadata, group_metadata, snapshot_chunks
from waterjar.run.growing import PACKED, GrowingGroup, Series, chunk_key, places, write_blocks
from waterjar.run.rows import LayerTable, Row
from waterjar.run.schema import EVENT_COLUMNS, GROWING, REASON, REASONS, STEP_COORDINATES, TIME_UNITS, flags
from waterjar.run.stamped import BLANK, stamp, to_json
from waterjar.run.store import LocalStore, sha256

Array = NDArray[Any]
_NOT_RECORDED = np.uint8(REASONS.index("not_recorded"))
CHECKSUM = b'{"attributes":{"checksum":"'
"""How a root begins: what follows is a checksum over all of it (see `stamped`)."""
_SNAPSHOT_GROUPS = ("features", "weights", "attention", "attribution", "streams", "probe_samples")
_COLUMNS: dict[str, np.dtype[Any] | None] = {
    **{key: np.dtype(np.int64) for key in ("step", "snapshot", "event", "train_task_index", "visit")},
    **{key: np.dtype(np.int64) for key in ("event_step", "event_repeat")},
    **{key: np.dtype(np.float64) for key in ("epoch", "total_epoch", "effective_epoch", "time")},
    **dict.fromkeys(("train_task", "level", "kind", "message")),
}
"""The dtype of what labels a row; None for text."""


class TreeWriter:
    """Knows every node of the run; `transaction` makes a set of changes visible at once, or none of them."""

    def __init__(self, store: LocalStore, storage: Storage, attributes: Json) -> None:
        self.store = store
        self.storage = storage
        self.attributes = attributes
        self.nodes: dict[str, Json] = {}
        self.groups: dict[tuple[str, str], GrowingGroup] = {}
        self.digests: dict[str, str] = {}
        self.dirty = False  # a transaction failed: files may hold rows that never became visible
        self._advanced: list[GrowingGroup] = []

    @contextmanager
    def transaction(self, progress: Json | None = None) -> Iterator[None]:
        """Everything put inside becomes visible at its end; on an error the run stays as it was."""
        nodes, groups = dict(self.nodes), dict(self.groups)
        series = {key: (group.length, dict(group.series)) for key, group in self.groups.items()}
        checks = [(one, list(one.crcs)) for group in self.groups.values() for one in group.series.values()]
        attributes = dict(self.attributes)
        try:
            yield
            for group in self._advanced:
                group.set_length(group.length + 1)
            if progress is not None:
                self.attributes["progress"] = progress
            self.commit()
        except BaseException:
            self.nodes, self.groups, self.dirty = nodes, groups, True
            for key, (length, arrays) in series.items():
                groups[key].series = arrays
                groups[key].set_length(length)
            for one, crcs in checks:  # after set_length, which may have settled a row that never became visible
                one.crcs = crcs
            self.attributes.clear()
            self.attributes.update(attributes)
            raise
        finally:
            self._advanced = []

    def commit(self, *, sync: bool = False) -> None:
        """Swap the root; `sync` also where the disk would not be waited for."""
        self.store.put_root(self.root(), sync=sync)

    def root(self) -> bytes:
        """The root zarr.json with the metadata of every node consolidated in it."""
        tree = {key: self.nodes[key] for key in sorted(self.nodes)}
        raw = [series for group in self.groups.values() for series in group.series.values() if series.is_raw]
        self.attributes["checks"] = {series.key: series.crcs for series in raw}
        consolidated = {"kind": "inline", "must_understand": False, "metadata": tree}
        attributes = {"checksum": BLANK, **self.attributes}
        return stamp(to_json({**group_metadata(attributes), "consolidated_metadata": consolidated}), CHECKSUM)

    def sizes(self, group: str) -> dict[str, int]:
        """Sizes of the dimensions of a group, as far as its arrays show them."""
        found = {dim: len(names) for dim, names in self.attributes.get("labels", {}).items()}
        if self.attributes["classes"] is not None:
            found["class"] = len(self.attributes["classes"])
        for key, node in self.nodes.items():
            if node["node_type"] == "array" and key.rpartition("/")[0] == group:
                found |= {d: n for d, n in zip(node["dimension_names"], node["shape"], strict=True) if d not in GROWING}
        return found

    def append(self, name: str, dim: str, coordinates: Json, rows: dict[str, Row]) -> None:
        """Add one row to a group; it counts from the end of the transaction."""
        group = self._growing(name, dim)
        if dim != "event":
            self._check_is_next(group, coordinates["step"])
        if dim == "snapshot" or name in PACKED:
            self._check_complete(group, rows)
        for key, value in coordinates.items():
            label = dim if (key == "step" and dim == "snapshot") else key
            group.series[label].put_row(
                group.length, np.asarray(value, dtype=object if isinstance(value, str) else None)
            )
        if dim == "event":
            group.series["event"].put_row(group.length, np.asarray(group.length))
        for key, row in rows.items():
            if key not in group.series:
                self._add_variable(group, key, row)
        for key, series in list(group.series.items()):
            if key in coordinates or key == dim or key.endswith(REASON):
                continue
            given = rows.get(key)
            reasons = np.full(series.inner, _NOT_RECORDED) if given is None else given.reasons
            series.put_row(group.length, np.full(series.inner, np.nan) if given is None else given.values)
            companion = group.series.get(key + REASON)
            if companion is None and reasons is not None:
                companion = self._add_reasons(group, key, series)
                companion.fill_rows(group.length, np.zeros(series.inner, np.uint8))
            if companion is not None:
                companion.put_row(group.length, np.zeros(series.inner, np.uint8) if reasons is None else reasons)
        self._advanced.append(group)

    def _growing(self, name: str, dim: str) -> GrowingGroup:
        if (name, dim) in self.groups:
            return self.groups[name, dim]
        group = self.groups[name, dim] = GrowingGroup(name, dim)
        columns = EVENT_COLUMNS if dim == "event" else STEP_COORDINATES
        for key in (dim, *columns):
            attributes = {"long_name": columns.get(key, key)}
            if key.endswith("epoch"):
                attributes["units"] = "epoch"
            elif key == "time":
                attributes["units"] = TIME_UNITS
            self._add_series(group, key, (), (), _COLUMNS[key], attributes)
        if dim != "event":
            self.mark_coordinates(name, list(columns))
        return group

    def _add_series(
        self,
        group: GrowingGroup,
        key: str,
        inner: tuple[int, ...],
        dims: tuple[str, ...],
        dtype: Any,
        attributes: Json,
    ) -> Series:
        path = f"{group.name}/{key}"
        if path in self.nodes:
            raise WaterjarError(
                f"{path} stands already in the run, with the dimensions {self.nodes[path]['dimension_names']}"
            )
        series = group.add(key, inner, dims, dtype, attributes, self.store, self.storage, self.digests)
        self._add_node(series.key, series.metadata)
        return series

    def _add_variable(self, group: GrowingGroup, key: str, row: Row) -> None:
        series = self._add_series(group, key, row.values.shape, row.dims, row.values.dtype, row.variable.attributes)
        self._label_dims(group.name, row.dims, row.values.shape)
        if group.length:  # rows before the first value: missing, and saying so
            series.fill_rows(group.length, np.full(series.inner, np.nan))
            companion = self._add_reasons(group, key, series)
            companion.fill_rows(group.length, np.full(series.inner, _NOT_RECORDED))

    def _add_reasons(self, group: GrowingGroup, key: str, series: Series) -> Series:
        dims = tuple(series.metadata["dimension_names"][1:])
        return self._add_series(group, key + REASON, series.inner, dims, np.dtype(np.uint8), flags(key))

    def _check_is_next(self, group: GrowingGroup, step: int) -> None:
        what = f"a snapshot of {group.name}" if group.dim == "snapshot" else group.name
        if group in self._advanced or (group.length and step <= self._last_label(group)):
            raise WaterjarError(f"step {step} has {what} already: one a step")

    def _check_complete(self, group: GrowingGroup, rows: dict[str, Row]) -> None:
        """Refuse a row that is not of the kind of the first: nothing fills it up."""
        if not group.length:
            return
        what = f"snapshot of {group.name}" if group.dim == "snapshot" else group.name
        variables = [key for key, s in group.series.items() if len(s.inner) > 0]
        if set(variables) != set(rows):
            raise WaterjarError(f"{what} has {sorted(rows)}; expected {sorted(variables)} as in the first one")
        for key, row in rows.items():
            first = group.series[key].metadata["data_type"]
            if row.values.dtype.name != first:
                raise WaterjarError(f"{what} has dtype {row.values.dtype.name}; expected {first} as in the first one")

    def _last_label(self, group: GrowingGroup) -> int:
        return int(group.series[group.dim].last(group.length))

    def put_static(
        self,
        group: str,
        key: str,
        values: Array,
        dims: tuple[str, ...],
        attributes: Json,
        *,
        is_label: bool = False,
    ) -> None:
        """Write an array that does not grow. The same one again is fine, another one is not."""
        path = f"{group}/{key}"
        text = values.dtype.kind in "OU"
        values = values.astype(object) if text else values
        digests: dict[str, str] = {}
        if path in self.nodes:
            known = self.nodes[path]
            same = known["shape"] == list(values.shape) and known["data_type"] == (
                "string" if text else values.dtype.name
            )
            if same:
                write_blocks(LocalStore.hasher(), path, known, (), values, digests)
            if not same or any(self.digests[name] != found for name, found in digests.items()):
                raise WaterjarError(f"{path} was recorded before with other values: it is written once")
            return
        chunks = snapshot_chunks(values.shape, 16 if text else values.itemsize, self.storage.snapshot_chunk_bytes)
        metadata = array_metadata(values.shape, chunks, None if text else values.dtype, dims, attributes, self.storage)
        self._add_node(path, metadata)
        write_blocks(self.store, path, metadata, (), values, digests)
        self.digests |= digests
        if not is_label:
            self._label_dims(group, dims, values.shape)

    def _label_dims(self, group: str, dims: Sequence[str], shape: Sequence[int]) -> None:
        """Write the coordinates that belong to a dimension, once a group."""
        root = self.attributes
        sets = root["probe_sets"] if group.split("/", maxsplit=1)[0] in _SNAPSHOT_GROUPS else list(root["eval_sets"])
        for dim, size in zip(dims, shape, strict=True):
            labels: dict[str, tuple[Sequence[Any], str]] = {}
            if dim == "eval_set":
                labels["eval_set"] = (sets, "evaluation set")
                labels["eval_task"] = (
                    [root["eval_sets"][s] for s in sets],
                    "task the set belongs to, -1 for none",
                )
            elif dim == "repeat":
                labels["repeat"] = (range(size), "repeat")
                labels["seed"] = (root["seeds"], "seed of the repeat")
            elif dim == "class":
                names = root["classes"]
                labels["class"] = (range(size) if names is None else names, "class")
            elif dim == "example":
                counts = root["example_sets"]
                labels["eval_set"] = ([name for name, count in counts.items() for _ in range(count)], "evaluation set")
                labels["sample"] = ([i for count in counts.values() for i in range(count)], "position in its set")
            elif dim in root.get("labels", {}):
                labels[dim] = (root["labels"][dim], dim)
            for key, (values, long_name) in labels.items():
                if f"{group}/{key}" not in self.nodes:
                    array = np.asarray(values, dtype=object if isinstance(values[0], str) else np.int64)
                    self.put_static(group, key, array, (dim,), {"long_name": long_name}, is_label=True)
            self.mark_coordinates(group, [key for key in labels if key != dim])

    def put_layers(self, table: LayerTable) -> None:
        """Write which stretch of the parameters belongs to which layer."""
        self.check_layers(table)
        columns = {
            "layer": (table.layers, "name of the layer"),
            "layer_start": (table.starts, "first parameter of the layer"),
            "layer_stop": (table.stops, "one past its last parameter"),
            "layer_shape": (table.shapes, "its shape"),
        }
        for key, (values, long_name) in columns.items():
            array = np.asarray(values, dtype=object if isinstance(values[0], str) else np.int64)
            self.put_static("weights", key, array, ("layer",), {"long_name": long_name}, is_label=True)
        self.attributes["layers"] = list(table.layers)
        self.mark_coordinates("weights", [key for key in columns if key != "layer"])

    def check_layers(self, table: LayerTable) -> None:
        """Refuse parameters that are not those of the first snapshot."""
        known = self.attributes.get("layers")
        if known is not None and known != list(table.layers):
            other = sorted(set(known) ^ set(table.layers)) or "the same in another order"
            raise WaterjarError(f"weights has other layers than before: {other}")

    def mark_coordinates(self, group: str, keys: Sequence[str]) -> None:
        """Say which arrays of a group are coordinates, beside those that are known to be."""
        node = self._group_node(group)
        listed = node["attributes"].get("coordinates", "").split()
        new = [*listed, *(key for key in keys if key not in listed)]
        if new != listed:
            node = self.nodes[group] = group_metadata({**node["attributes"], "coordinates": " ".join(new)})
            self.digests[f"{group}/zarr.json"] = self.store.put(f"{group}/zarr.json", to_json(node))

    def _group_node(self, group: str) -> Json:
        for path in itertools.accumulate(group.split("/"), lambda a, b: f"{a}/{b}"):
            if path not in self.nodes:
                self.nodes[path] = group_metadata({})
                self.digests[f"{path}/zarr.json"] = self.store.put(f"{path}/zarr.json", to_json(self.nodes[path]))
        return self.nodes[group]

    def _add_node(self, path: str, metadata: Json) -> None:
        """Add an array; its own file says length 0 until the run is closed, for readers that skip the root."""
        self._group_node(path.rpartition("/")[0])
        self.nodes[path] = metadata
        growing = metadata["dimension_names"][:1] and metadata["dimension_names"][0] in GROWING
        shown = {**metadata, "shape": [0, *metadata["shape"][1:]]} if growing else metadata
        self.digests[f"{path}/zarr.json"] = self.store.put(f"{path}/zarr.json", to_json(shown))

    def tidy(self) -> None:
        """Remove files of rows and arrays that never became visible."""
        expected = expected_files(self.nodes)
        present = list(self.store.files())
        arrays = {path for path, node in self.nodes.items() if node["node_type"] == "array"}
        strays = [key for key in present if key.endswith("/zarr.json") and key not in expected]
        arrays |= {key.removesuffix("/zarr.json") for key in strays}
        for key in present:
            owner = key.removesuffix("/zarr.json") if key.endswith("/zarr.json") else key.partition("/c/")[0]
            if key not in expected and owner in arrays:  # files of the user's are none of our business
                self.store.delete(key)
        self.digests = {key: value for key, value in self.digests.items() if key in expected}
        for group in self.groups.values():
            for series in group.series.values():
                series.digests = self.digests
        self.dirty = False

    def finish(self) -> None:
        """Bring every file to what a run of this length consists of, whatever happened on the way."""
        if self.dirty:
            self.tidy()
        for group in self.groups.values():
            for series in group.series.values():
                series.finish(group.length)
        absent = sorted(expected_files(self.nodes) - set(self.digests))
        if absent:
            raise WaterjarError(f"{self.store.path} cannot be sealed: {absent[0]} was never written")
        for path, node in self.nodes.items():  # true shapes, for readers that skip the root
            key, text = f"{path}/zarr.json", to_json(node)
            if self.digests[key] != sha256(text):
                self.digests[key] = self.store.put(key, text)


def expected_files(nodes: dict[str, Json]) -> set[str]:
    """The files that a tree of these nodes consists of, the root left out."""
    files: set[str] = set()
    for path, node in nodes.items():
        files.add(f"{path}/zarr.json")
        if node["node_type"] == "array":
            files.update(chunk_names(path, node))
    return files


def chunk_names(path: str, node: Json) -> Iterator[str]:
    """The chunks of an array, one by one: a shape may call for more than memory holds."""
    chunks = node["chunk_grid"]["configuration"]["chunk_shape"]
    grid = [range(-(-size // chunk)) for size, chunk in zip(node["shape"], chunks, strict=True)]
    return (chunk_key(path, index) for index in places(grid))
