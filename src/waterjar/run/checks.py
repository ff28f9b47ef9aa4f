"""Is an open run whole? Every file that its shapes call for is there, and every checksum holds.

Chunks of snapshots and texts carry a crc32c inside; of raw chunks the root keeps one over their visible rows.
"""

from __future__ import annotations

import math
from pathlib import Path

import google_crc32c
import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run.codec import Json, decode, readable
from waterjar.run.growing import is_raw
from waterjar.run.writer import expected_files


def row_checksums(path: Path, key: str, metadata: Json, length: int) -> list[int]:
    """One checksum per raw chunk, over its first rows up to `length`."""
    rows, *inner = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    size = math.prod(inner) * np.dtype(metadata["data_type"]).itemsize
    found = []
    for index in range(math.ceil(length / rows)):
        name = "/".join([key, "c", str(index), *("0" for _ in inner)])
        data = (path / name).read_bytes()[: (min(length, (index + 1) * rows) - index * rows) * size]
        found.append(google_crc32c.value(data))
    return found


def damage(path: Path, root: Json) -> list[tuple[str, str]]:
    """(what, file) of everything in an open run that is not as it was written."""
    nodes = root["consolidated_metadata"]["metadata"]
    checks = root["attributes"].get("checks", {})
    expected = expected_files(nodes)
    found = [("missing", key) for key in sorted(expected) if not (path / key).is_file()]
    lost = {key for _, key in found}
    for array, node in sorted(nodes.items()):
        chunks = sorted(key for key in expected if key.startswith(f"{array}/c/") and key not in lost)
        if node["node_type"] != "array" or not readable(node):
            continue
        if is_raw(node):
            if len(chunks) == len([key for key in expected if key.startswith(f"{array}/c/")]):
                now = row_checksums(path, array, node, node["shape"][0]) if chunks and array in checks else []
                inner = "/0" * (len(node["shape"]) - 1)
                pairs = enumerate(zip(now, checks.get(array, []), strict=False))
                found += [("changed", f"{array}/c/{i}{inner}") for i, (a, b) in pairs if a != b]
            continue
        for key in chunks:
            try:
                decode((path / key).read_bytes(), node, key)
            except WaterjarError:
                found.append(("changed", key))
    return found
