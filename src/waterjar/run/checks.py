"""Is an open run whole? Every file that its shapes call for is there, and every checksum holds.

Chunks of snapshots and texts carry a crc32c inside; of raw chunks the root keeps one over their visible rows, and of
itself one over all it says.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run.codec import Json
from waterjar.run.growing import is_raw
from waterjar.run.root import read_array
from waterjar.run.schema import GROWING
from waterjar.run.store import LocalStore, read_file
from waterjar.run.writer import chunk_names

_OLD_FORMAT = (".zgroup", ".zarray", ".zattrs", ".zmetadata")
_MOST = 20
"""Missing chunks of one array that are named: a wrong shape would miss millions."""


def is_zarr(key: str) -> bool:
    """Whether other programs would take a file for a node of the run."""
    return key.rpartition("/")[2] in ("zarr.json", *_OLD_FORMAT)


def row_checksums(path: Path, key: str, metadata: Json, length: int) -> list[int]:
    """One checksum per raw chunk, over its first rows up to `length`."""
    rows, *inner = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    size = math.prod(inner) * np.dtype(metadata["data_type"]).itemsize
    found = []
    for index in range(math.ceil(length / rows)):
        name = "/".join([key, "c", str(index), *("0" for _ in inner)])
        data = read_file(path, name, rows * size)[: (min(length, (index + 1) * rows) - index * rows) * size]
        found.append(google_crc32c.value(data))
    return found


def damage(path: Path, root: Json) -> list[tuple[str, str]]:
    """(what, file) of everything in an open run that is not as it was written."""
    nodes = root["consolidated_metadata"]["metadata"]
    checks = root["attributes"].get("checks", {})
    present = set(LocalStore(path).files())
    found = [("of another Zarr format", key) for key in sorted(present) if is_zarr(key) and not key.endswith(".json")]
    for key, node in sorted(nodes.items()):
        found += [(what, f"{key}/zarr.json") for what in _node_damage(path, key, node)]
        if node["node_type"] == "array":
            missing = itertools.islice((name for name in chunk_names(key, node) if name not in present), _MOST)
            gone = [("missing", name) for name in missing]
            found += gone or _chunk_damage(path, key, node, checks.get(key))
    return found


def _node_damage(path: Path, key: str, node: Json) -> Iterator[str]:
    """What is wrong with a node's own file. It may be ahead of the root, or have no length yet, while steps come in."""
    try:
        own = json.loads(read_file(path, f"{key}/zarr.json"))
    except FileNotFoundError:
        yield "missing"
    except (OSError, ValueError, RecursionError):
        yield "changed"
    else:
        growing = node["node_type"] == "array" and node["dimension_names"][:1] and node["dimension_names"][0] in GROWING
        if growing and isinstance(own, dict) and isinstance(own.get("shape"), list):
            own["shape"] = [*node["shape"][:1], *own["shape"][1:]]
        if isinstance(own, dict) and node["node_type"] == "group":
            own["attributes"] = node["attributes"]
        if own != node:
            yield "changed"


def _chunk_damage(path: Path, key: str, node: Json, checks: list[int] | None) -> Iterator[tuple[str, str]]:
    """Chunks whose checksum does not hold."""
    if is_raw(node):
        try:
            now = row_checksums(path, key, node, node["shape"][0]) if checks is not None else []
        except OSError:
            now = []
        for name, one, other in itertools.zip_longest(chunk_names(key, node), now, checks or []):
            if checks is not None and one != other:
                yield "changed", str(name)
        return
    chunks = node["chunk_grid"]["configuration"]["chunk_shape"]
    for name in chunk_names(key, node):
        index = [int(part) for part in name.removeprefix(f"{key}/c/").split("/")]
        region = [(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunks, node["shape"], strict=True)]
        try:
            read_array(path, key, node, region=region)
        except WaterjarError:
            yield "changed", name
