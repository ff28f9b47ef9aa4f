"""Zarr v3 array metadata and chunks: written and read back without importing zarr.

Going through zarr costs about a millisecond an array, which a recorder that rewrites dozens of small
tails each epoch cannot afford. What is written is plain Zarr v3 (checked by opening it with zarr and
xarray): codecs bytes or vlen-utf8, then for all but numbers per step zstd or blosc-lz4 or none, and crc32c.
gzip is read, too.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import google_crc32c
import numpy as np
from numcodecs import Blosc, VLenUTF8, Zstd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waterjar.errors import WaterjarError, brief
from waterjar.run.faults import of_pydantic
from waterjar.run.identity import plain
from waterjar.run.nodes import chunk_bytes

Json = dict[str, Any]
_PLAUSIBLE, _DENSEST = 2**28, 1024
"""A chunk is unpacked to 256 MiB, or to so many times the size of its file; the densest codec would do 30,000 times."""


class Storage(BaseModel):
    """How a run is stored. Numbers per step default to float64 and are small, so they are stored raw, and a step costs
    a write into place; snapshots keep the dtype they come in and are compressed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step_dtype: Literal["float64", "float32"] = "float64"
    snapshot_dtype: Literal["keep", "float16", "float32", "float64"] = "keep"
    example_dtype: Literal["float16", "float32"] = "float16"
    """Of margins per example; what is beyond it (65,504) is infinite. Logits are snapshots."""
    compression: Literal["zstd", "lz4", "none"] = "zstd"
    level: int = Field(default=-1, ge=-7, le=9)
    """Of zstd below 0: fast. On weights, which hardly compress, -1 takes a tenth of the time of 1."""
    step_chunk: int = Field(default=256, ge=2)
    step_chunk_bytes: int = Field(default=2**18, ge=64)
    snapshot_chunk_bytes: int = Field(default=2**26, ge=1, le=2**28)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            found = of_pydantic(error, type(self), settings)
            raise WaterjarError("\n".join(f"Storage: {fault}" for fault in found)) from None

    sync: bool | None = None
    """Wait for the disk: at every commit, never, or (None) as often as takes 2 % of the time. See docs/runs.md."""


def storage_of(given: Storage | Mapping[str, Any] | None) -> Storage:
    """Settings of the storage, checked; those left out have their defaults."""
    if isinstance(given, Storage):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise WaterjarError(f"storage={brief(repr(given))}: expected a Storage, or a mapping of its settings")
    return Storage(**plain(given or {}, "storage"))


def array_metadata(
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: np.dtype[Any] | None,
    dims: tuple[str, ...],
    attributes: Json,
    storage: Storage,
    *,
    raw: bool = False,
) -> Json:
    """The zarr.json of an array; dtype None means text, raw neither compression nor checksum."""
    if dtype is None:
        kind, fill, first = "string", "", {"name": "vlen-utf8", "configuration": {}}
    else:
        kind = dtype.name
        fill = {"f": "NaN", "b": False}.get(dtype.kind, 0)  # type: ignore[assignment]
        first = {"name": "bytes", "configuration": {"endian": "little"}}
        if dtype.itemsize == 1:
            first = {"name": "bytes", "configuration": {}}
    return {
        "shape": list(shape),
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [first] if raw else [first, *_compressor(dtype, storage), {"name": "crc32c"}],
        "attributes": attributes,
        "dimension_names": list(dims),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def _compressor(dtype: np.dtype[Any] | None, storage: Storage) -> list[Json]:
    if storage.compression == "none":
        return []
    if storage.compression == "lz4" and dtype is not None:
        size = dtype.itemsize
        shuffle = "shuffle" if size > 1 else "noshuffle"
        settings = {
            "typesize": size,
            "cname": "lz4",
            "clevel": max(1, storage.level),
            "shuffle": shuffle,
            "blocksize": 0,
        }
        return [{"name": "blosc", "configuration": settings}]
    return [{"name": "zstd", "configuration": {"level": storage.level, "checksum": False}}]


def group_metadata(attributes: Json) -> Json:
    """The zarr.json of a group."""
    return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}


def encode(chunk: NDArray[Any], metadata: Json) -> bytes:
    """Encode one full chunk as its metadata says."""
    data: Any = chunk
    for codec in metadata["codecs"]:
        settings = codec.get("configuration", {})
        match codec["name"]:
            case "vlen-utf8":
                data = VLenUTF8().encode(chunk.ravel())
            case "bytes" if settings.get("endian", "little") == "little":
                data = np.ascontiguousarray(chunk)
            case "zstd":
                data = Zstd(level=settings.get("level", -1)).encode(data)
            case "blosc" if settings.keys() >= {"cname", "clevel", "shuffle", "typesize"}:
                mode = Blosc.SHUFFLE if settings["shuffle"] == "shuffle" else Blosc.NOSHUFFLE
                data = Blosc(settings["cname"], settings["clevel"], mode, 0, typesize=settings["typesize"]).encode(data)
            case "crc32c":
                payload = bytes(data) if not isinstance(data, np.ndarray) else data.tobytes()
                data = payload + google_crc32c.value(payload).to_bytes(4, "little")
            case _:
                raise WaterjarError(f"a chunk with the codec {codec} can be read, not written: record to another path")
    return data.tobytes() if isinstance(data, np.ndarray) else bytes(data)


def decode(data: bytes, metadata: Json, where: str) -> NDArray[Any]:
    """Decode one chunk; a checksum that does not hold is an error that names it.

    Nothing is unpacked that would take more memory than the metadata, which has been checked, declares for a chunk.
    """
    shape = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    limit = chunk_bytes(metadata)
    payload: Any = data
    try:
        if limit > max(_PLAUSIBLE, _DENSEST * len(data)):
            raise ValueError(f"a file of {len(data)} bytes is said to hold {limit}")
        for codec in reversed(metadata["codecs"]):
            match codec["name"]:
                case "crc32c":
                    payload, stored = payload[:-4], payload[-4:]
                    if google_crc32c.value(payload).to_bytes(4, "little") != stored:
                        raise ValueError("its checksum does not hold")
                case "vlen-utf8":
                    if int.from_bytes(payload[:4], "little") != math.prod(shape):
                        raise ValueError(f"it does not hold {math.prod(shape)} texts")
                    return np.asarray(VLenUTF8().decode(payload), dtype=object).reshape(shape)
                case "bytes":
                    order = codec.get("configuration", {}).get("endian", "little")
                    stored = np.frombuffer(payload, dtype=np.dtype(metadata["data_type"]).newbyteorder(order))
                    return stored.reshape(shape).astype(stored.dtype.newbyteorder("<"))
                case name:
                    payload = unpacked(payload, name, limit)
    except (ValueError, RuntimeError) as error:
        raise WaterjarError(f"{where} is damaged: {error}") from error
    except MemoryError as error:
        raise WaterjarError(f"{where} does not fit into memory: a chunk of {shape} {metadata['data_type']}") from error
    raise WaterjarError(f"{where} cannot be read: its array has no codec for numbers or texts")


def unpacked(data: bytes, codec: str, limit: int) -> bytes:
    """Decompress, unless more than `limit` bytes would come out: these formats say in their head how many."""
    if codec == "gzip":
        stream = zlib.decompressobj(wbits=31)
        found = stream.decompress(data, limit + 1)
        if len(found) > limit or not stream.eof:
            raise ValueError(f"it unpacks to more than the {limit} bytes that are declared, or is cut off")
        return found
    size = _zstd_size(data) if codec == "zstd" else int.from_bytes(data[4:8], "little")
    if size > limit:
        raise ValueError(f"it unpacks to {size} bytes, {limit} are declared")
    return bytes(Zstd().decode(data) if codec == "zstd" else Blosc().decode(data))


def _zstd_size(data: bytes) -> int:
    """How much a zstd frame unpacks to, as its head says (RFC 8878, 3.1.1.1); zarr's writers always say it."""
    head = data[4] if len(data) > 4 else 0
    single, kind = head >> 5 & 1, head >> 6
    begin = 5 + (1 - single) + (0, 1, 2, 4)[head & 3]
    length = (single, 2, 4, 8)[kind]
    if data[:4] != b"\x28\xb5\x2f\xfd" or not length or len(data) < begin + length:
        raise ValueError("it is no zstd frame that says its size")
    return int.from_bytes(data[begin : begin + length], "little") + 256 * (length == 2)


def step_chunk(inner: tuple[int, ...], itemsize: int, storage: Storage) -> int:
    """Steps a chunk holds: it is written whole when it begins, and stays in memory until it is full.

    >>> step_chunk((10, 1), 8, Storage()), step_chunk((50, 100), 8, Storage())
    (256, 6)
    """
    row = max(1, math.prod(inner) * itemsize)
    return max(1, min(storage.step_chunk, storage.step_chunk_bytes // row))


def snapshot_chunks(inner: tuple[int, ...], itemsize: int, limit: int) -> tuple[int, ...]:
    """Split one snapshot from its first dimension on until a chunk fits the limit.

    >>> snapshot_chunks((3, 1000, 512), 4, 2**20)
    (1, 500, 512)
    """
    chunks = [max(1, size) for size in inner]
    for axis in range(len(chunks)):
        while math.prod(chunks) * itemsize > limit and chunks[axis] > 1:
            chunks[axis] = -(-chunks[axis] // 2)
    return tuple(chunks)
