"""Arrays and groups that grow by one row at a time, with bounded memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from waterjar.run.codec import Json, Storage, array_metadata, decode, encode, snapshot_chunks, step_chunk
from waterjar.run.store import LocalStore, sha256

Array = NDArray[Any]


def chunk_key(array: str, index: tuple[int, ...]) -> str:
    """Where a chunk stands.

    >>> chunk_key("performance/loss", (0, 2))
    'performance/loss/c/0/2'
    """
    return "/".join([array, "c", *map(str, index)])


def places(grid: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """The indices of the chunks in a grid, one by one: itertools.product begins with a list of every side of it.

    >>> list(places([range(2), range(1, 3)]))
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    """
    if not grid:
        yield ()
        return
    for first in grid[0]:
        for rest in places(grid[1:]):
            yield (first, *rest)


def write_blocks(
    store: LocalStore, key: str, metadata: Json, lead: tuple[int, ...], values: Array, digests: dict[str, str]
) -> None:
    """Cut `values` into chunks (the leading chunk index is `lead`), pad the edges, write them."""
    chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])[len(lead) :]
    ones = (1,) * len(lead)
    grid = [range(math.ceil(size / chunk)) for size, chunk in zip(values.shape, chunks, strict=True)]
    for index in itertools.product(*grid):
        block = values[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True))]
        if block.shape != chunks:
            padded = filled(chunks, metadata)
            padded[tuple(slice(0, n) for n in block.shape)] = block
            block = padded
        name = chunk_key(key, (*lead, *index))
        digests[name] = store.put(name, encode(block.reshape(ones + chunks), metadata))


def filled(shape: tuple[int, ...], metadata: Json) -> Array:
    """An array of the metadata's fill value."""
    if metadata["data_type"] == "string":
        return np.full(shape, "", dtype=object)
    fill = metadata["fill_value"]
    return np.full(shape, np.nan if fill == "NaN" else fill, dtype=metadata["data_type"])


def is_raw(metadata: Json) -> bool:
    """Whether chunks of an array are bare numbers, without a checksum inside."""
    return [codec["name"] for codec in metadata["codecs"]] == ["bytes"]


class Series:
    """One array that grows along its first dimension.

    A snapshot is a chunk of its own (or several, if large) and is forgotten once written. Rows of numbers per
    step share a raw chunk: a new row is written into its place, which no reader looks at before the root says
    that the array is that long. That is ten times cheaper than replacing the file, and just as safe. Texts, and
    rows per example, which are many bytes, share a packed chunk that is replaced; names of tasks only when they change:
    the rows to come are filled with them.

    Raw chunks hold no checksum of their own, so the root keeps one of the visible rows of each (`crcs`).
    """

    def __init__(self, key: str, metadata: Json, store: LocalStore, digests: dict[str, str]) -> None:
        self.key = key
        self.metadata = metadata
        self.digests = digests
        self._store = store
        self._chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        self._rows = int(self._chunks[0])
        self._is_text = metadata["data_type"] == "string"
        self._fills_ahead = metadata["dimension_names"][0] != "event"
        self.crcs: list[int] = []
        self._pending: tuple[int, int, int] | None = None  # length, chunk and checksum once the row is visible
        self._tail: Array | None = None
        self._tail_index = -1  # which chunk the tail is

    @property
    def inner(self) -> tuple[int, ...]:
        """Shape of one row."""
        return tuple(self.metadata["shape"][1:])

    def put_row(self, position: int, row: Array) -> None:
        """Write a row; it becomes visible when the root says that the array is that long."""
        if self._rows == 1:
            write_blocks(self._store, self.key, self.metadata, (position,), row, self.digests)
            return
        index, slot = divmod(position, self._rows)
        if self._tail is None or slot == 0:
            self._start_tail(index)
        assert self._tail is not None and self._tail_index == index
        if self._is_text:
            if slot == 0 or self._tail[slot] != row[()]:
                self._tail[slot : None if self._fills_ahead else slot + 1] = row[()]
                self._replace_tail()
        elif not self.is_raw:
            self._tail[slot] = row
            self._replace_tail()
        else:
            self._tail[slot] = row
            data = self._tail[slot].tobytes()
            if slot == 0:
                self._replace_tail()
            else:
                self._store.patch(self._name(index), slot * len(data), data)
            self._pending = (position + 1, index, google_crc32c.extend(self.crcs[index] if slot else 0, data))

    def settle(self, length: int) -> None:
        """The array is that long from the next root on."""
        self.metadata["shape"][0] = length
        if self._pending is not None and self._pending[0] == length:
            self.crcs[self._pending[1] :] = [self._pending[2]]
        self._pending = None

    def fill_rows(self, count: int, row: Array) -> None:
        """Write `count` equal rows from the start: what a late variable missed."""
        for start in range(0, count, self._rows):
            if self._rows == 1:
                self.put_row(start, row)
            else:
                self._start_tail(start // self._rows)
                assert self._tail is not None
                self._tail[: count - start] = row
                self._replace_tail()
                self.crcs.append(google_crc32c.value(self._tail[: count - start].tobytes()))

    def _start_tail(self, index: int) -> None:
        if self._tail is not None and self._tail_index == index - 1:
            self.digests[self._name(self._tail_index)] = sha256(encode(self._tail, self.metadata))
        self._tail, self._tail_index = filled(self._chunks, self.metadata), index

    def _name(self, index: int) -> str:
        return chunk_key(self.key, (index,) + (0,) * len(self.inner))

    def _replace_tail(self) -> None:
        assert self._tail is not None
        name = self._name(self._tail_index)
        self.digests[name] = self._store.put(name, encode(self._tail, self.metadata))

    def read_tail(self, length: int) -> None:
        """After a resume: take the tail back into memory."""
        index, slot = divmod(length, self._rows)
        if self._rows > 1 and slot:
            name = self._name(index)
            self._tail = decode(self._store.get(name), self.metadata, f"{self._store.path / name}")
            self._tail_index = index

    def finish(self, length: int) -> None:
        """Write the tail with nothing in it beyond `length`: texts to come, rows that never became visible."""
        index, slot = divmod(length, self._rows)
        if self._rows == 1 or self._tail is None or self._tail_index != index - (slot == 0):
            return
        if slot:
            self._tail[slot:] = filled((1,), self.metadata)[0]
        self._replace_tail()

    @property
    def is_raw(self) -> bool:
        """Whether chunks have no checksum inside."""
        return is_raw(self.metadata)

    def last(self, length: int) -> Any:
        """The last row of a series with a tail in memory."""
        if self._tail is not None and self._tail_index == (length - 1) // self._rows:
            return self._tail[(length - 1) % self._rows]
        name = self._name((length - 1) // self._rows)
        return decode(self._store.get(name), self.metadata, name)[(length - 1) % self._rows]


PACKED = ("examples",)
"""Groups of steps whose rows are packed: they are many bytes, and the same ones again and again."""


class GrowingGroup:
    """The arrays of one group that grow together along `dim`."""

    def __init__(self, name: str, dim: str) -> None:
        self.name = name
        self.dim = dim
        self.length = 0
        self.series: dict[str, Series] = {}

    def add(
        self,
        name: str,
        inner: tuple[int, ...],
        dims: tuple[str, ...],
        dtype: np.dtype[Any] | None,
        attributes: Json,
        store: LocalStore,
        storage: Storage,
        digests: dict[str, str],
    ) -> Series:
        """Give the group one more array; rows it missed are up to the caller."""
        itemsize = 16 if dtype is None else dtype.itemsize
        if self.dim == "snapshot" and inner:
            chunks = (1, *snapshot_chunks(inner, itemsize, storage.snapshot_chunk_bytes))
        else:
            chunks = (step_chunk(inner, itemsize, storage), *(max(1, size) for size in inner))
        raw = dtype is not None and chunks[0] > 1 and self.name not in PACKED
        metadata = array_metadata((self.length, *inner), chunks, dtype, (self.dim, *dims), attributes, storage, raw=raw)
        self.series[name] = Series(f"{self.name}/{name}", metadata, store, digests)
        return self.series[name]

    def set_length(self, length: int) -> None:
        """Say how many rows readers see from the next root on."""
        self.length = length
        for series in self.series.values():
            series.settle(length)
