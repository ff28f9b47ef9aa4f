"""What a node of a run may be. A run may come from a stranger: what is not on these lists is never handed on.

Zarr's second format and codecs by other names are refused: some of them run code of the file's author.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from waterjar.run.schema import GROUPS, GROWING, REASON, SCHEMA_VERSION, STEP_COORDINATES, variables_of

Json = dict[str, Any]

DTYPES = frozenset(
    f"{kind}{bits}" for kind, sizes in (("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)), ("float", (16, 32, 64)))
    for bits in sizes
) | {"bool"}  # fmt: skip
_RANGES = {k: (int(np.iinfo(k).min), int(np.iinfo(k).max)) for k in DTYPES if "int" in k}
TEXT = "string"
PACKERS = ("zstd", "blosc", "gzip", "crc32c")
"""Codecs from bytes to bytes; before them stands `bytes`, or `vlen-utf8` for text."""
LARGEST_TEXT = 2**28
"""Bytes that a chunk of texts may unpack to: what is declared does not say how long they are."""
_LARGEST_SIZE = 2**48
_INSIDE = re.compile(r"(?!\.{1,2}(/|$))[^/\0]+(/(?!\.{1,2}(/|$))[^/\0]+)*")
"""Paths that lead nowhere but down."""


def _is_small(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**31


_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "endian": lambda value: value in ("little", "big"),
    "cname": lambda value: value in ("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"),
    "shuffle": lambda value: value in ("noshuffle", "shuffle", "bitshuffle"),
    "checksum": lambda value: isinstance(value, bool),
}
"""What settings of codecs may be; those not named here are whole numbers (levels, sizes)."""


class Fault(Exception):
    """What is wrong with a node, and which one."""


def chunk_bytes(node: Json) -> int:
    """Bytes of one unpacked chunk of numbers; of texts the most that is taken."""
    if node["data_type"] == TEXT:
        return LARGEST_TEXT
    shape: list[int] = node["chunk_grid"]["configuration"]["chunk_shape"]
    return math.prod(shape) * np.dtype(node["data_type"]).itemsize


def check_nodes(nodes: Mapping[str, Any], repeats: int, schema: int = SCHEMA_VERSION) -> None:
    """Raise Fault unless every node is one that this package may have written, and those of a group fit together."""
    sizes: dict[tuple[str, str], int] = {}
    for key, node in nodes.items():
        parent, _, name = key.rpartition("/")
        if not _INSIDE.fullmatch(key):
            raise Fault(f"node {key!r} has no place inside the run")
        if parent and (not isinstance(nodes.get(parent), dict) or nodes[parent].get("node_type") != "group"):
            raise Fault(f"node {key!r} is in no group")
        check_node(key, node)
        if node["node_type"] != "array":
            continue
        _check_labels(key, name, node, nodes[parent]["attributes"].get("coordinates", "").split() if parent else [])
        known = variables_of(parent, schema) if parent.partition("/")[0] in GROUPS else {}
        declared = known.get(name.removesuffix(REASON))
        if declared is not None and node["dimension_names"] != list(declared.dims):
            raise Fault(f"array {key!r} has the dimensions {node['dimension_names']}; expected {list(declared.dims)}")
        for dim, size in zip(node["dimension_names"], node["shape"], strict=True):
            if sizes.setdefault((parent, dim), repeats if dim == "repeat" else size) != size:
                expected = sizes[parent, dim]
                raise Fault(f"array {key!r} has {dim}={size} where the rest of the run has {expected}")
    for group, dim in sizes:
        label = nodes.get(f"{group}/{dim}", {})
        if label.get("node_type") == "array" and label["dimension_names"] != [dim]:
            raise Fault(f"array {group}/{dim} has the dimensions {label['dimension_names']}: it labels {dim}")


def check_node(key: str, node: Any) -> None:
    """Raise Fault unless a node, by itself, is a group or an array that the one reader reads."""
    if not isinstance(node, dict) or type(node.get("zarr_format")) is not int or node["zarr_format"] != 3:
        form = node.get("zarr_format") if isinstance(node, dict) else node
        raise Fault(f"node {key!r} has zarr_format {form!r}; only 3 is read")
    if node.get("node_type") not in ("group", "array") or not isinstance(node.get("attributes"), dict):
        raise Fault(f"node {key!r} is neither a group nor an array with attributes")
    if node["node_type"] == "group":
        if not isinstance(node["attributes"].get("coordinates", ""), str):
            raise Fault(f"group {key!r} has coordinates that are not text")
        return
    shape: Any = node.get("shape")
    dims: Any = node.get("dimension_names")
    if not _are_sizes(shape, 0):
        raise Fault(f"array {key!r} has shape {shape!r}; expected whole numbers")
    if not isinstance(dims, list) or not set(map(type, dims)) <= {str} or "" in dims:
        raise Fault(f"array {key!r} has dimension_names {dims!r}; expected names")
    if len(dims) != len(shape) or len(set(dims)) != len(dims):
        raise Fault(f"array {key!r} has {len(shape)} dimensions and the names {dims!r}")
    grid, keys = node.get("chunk_grid"), node.get("chunk_key_encoding")
    chunks: Any = _settings(grid).get("chunk_shape") if _name(grid) == "regular" else None
    if not _are_sizes(chunks, 1):
        raise Fault(f"array {key!r} has the chunk grid {grid!r}; expected a regular one of whole numbers above 0")
    if len(chunks) != len(shape):
        raise Fault(f"array {key!r} has {len(shape)} dimensions and chunks of {len(chunks)}")
    if _name(keys) != "default" or _settings(keys).get("separator", "/") != "/" or node.get("storage_transformers"):
        raise Fault(f"array {key!r} keeps its chunks in another way than <array>/c/<index>")
    _check_codecs(key, node)


def _check_codecs(key: str, node: Json) -> None:
    kind, codecs, fill = node.get("data_type"), node.get("codecs", []), node.get("fill_value")
    if not isinstance(kind, str) or (kind != TEXT and kind not in DTYPES):
        raise Fault(f"array {key!r} has data_type {kind!r}; expected one of {', '.join(sorted(DTYPES))}, {TEXT}")
    if not isinstance(fill, str if kind == TEXT else int | float | str) or (kind != TEXT and _not_a_fill(fill, kind)):
        raise Fault(f"array {key!r} has fill_value {fill!r}, which is no {kind}")
    names = [_name(codec) for codec in codecs] if isinstance(codecs, list) else []
    first = "vlen-utf8" if kind == TEXT else "bytes"
    if names[:1] != [first] or not all(name in PACKERS for name in names[1:]) or len(names) > 4:
        raise Fault(f"array {key!r} has the codecs {names}; expected {first}, then any of {', '.join(PACKERS)}")
    for codec in codecs:
        own = codec.get("configuration", {})
        if not isinstance(own, dict) or not all(_SETTINGS.get(name, _is_small)(value) for name, value in own.items()):
            raise Fault(f"array {key!r} has the codec {codec!r}, whose settings are none that it has")


def _check_labels(key: str, name: str, node: Json, coordinates: list[str]) -> None:
    """The labels of rows, on which everything else rests, are one number each (or the name of a task), and listed."""
    if name in GROWING:
        good = node["dimension_names"] == [name] and node["data_type"] == "int64"
    elif name in STEP_COORDINATES and node["dimension_names"]:
        text = name == "train_task"
        good = len(node["shape"]) == 1 and (node["data_type"] == TEXT) == text
    else:
        return
    if name in STEP_COORDINATES and name not in coordinates:
        raise Fault(f"array {key!r} is not among the coordinates of its group")
    if not good:
        raise Fault(f"array {key!r} has dimensions {node['dimension_names']} of {node['data_type']}: it labels rows")


def _not_a_fill(value: Any, kind: str) -> bool:
    if isinstance(value, str):
        return not (kind.startswith("float") and value in ("NaN", "Infinity", "-Infinity"))
    if kind.startswith("float"):
        return isinstance(value, bool)
    if kind == "bool":
        return not isinstance(value, bool)
    return type(value) is not int or not _RANGES[kind][0] <= value <= _RANGES[kind][1]


def _are_sizes(values: Any, least: int) -> bool:
    whole = isinstance(values, list) and set(map(type, values)) <= {int}
    return whole and (not values or (min(values) >= least and max(values) < _LARGEST_SIZE))


def _name(part: Any) -> Any:
    """Of a codec or grid."""
    return part.get("name") if isinstance(part, dict) else None


def _settings(part: Any) -> Json:
    found = part.get("configuration") if isinstance(part, dict) else None
    return found if isinstance(found, dict) else {}
