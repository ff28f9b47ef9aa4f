"""Room for large arrays that is used again from snapshot to snapshot.

The Gram matrix and what belongs to it are some megabytes. Freed, they go back to the system, and the next snapshot's
come page by page with a fault each: a quarter of the time of a snapshot of ten manifolds. So memory that nobody refers
to any more is kept here, a little of it, by the thread that asked for it.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_SMALLEST, _MOST = 2**17, 2**26  # bytes: of a piece that is kept, and of all pieces of a thread


class _Kept(threading.local):
    def __init__(self) -> None:
        self.pieces: list[NDArray[np.uint8]] = []


def _references(pieces: list[NDArray[np.uint8]], place: int) -> int:
    return sys.getrefcount(pieces[place])


def _count_of_free() -> int:
    """What `_references` says of a piece that nobody holds; -1 where counts do not tell.

    How many references counting itself takes differs between versions of Python, and without its lock counts are not
    exact: so it is tried out.
    """
    pieces = [np.empty(1, np.uint8)]
    free = _references(pieces, 0)
    view = pieces[0][:1].view(np.int8).reshape(1, 1)
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    told = locked and view.base is pieces[0] and _references(pieces, 0) == free + 1
    del view
    return free if told and _references(pieces, 0) == free else -1


_kept = _Kept()
_FREE = _count_of_free()


def room(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array like that of `np.empty`; an array or a view of it that is still in use keeps its memory for itself.

    >>> first = room((100, 100))
    >>> second = room((100, 100))
    >>> bool(np.shares_memory(first, second))
    False
    """
    kind = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * kind.itemsize
    if not _SMALLEST <= size <= _MOST // 2 or _FREE < 0:
        return np.empty(shape, kind)
    pieces = _kept.pieces
    for place in range(len(pieces)):
        if size <= pieces[place].nbytes <= 2 * size and _references(pieces, place) == _FREE:
            return pieces[place][:size].view(kind).reshape(shape)
    piece = np.empty(size, np.uint8)
    pieces.append(piece)
    while sum(one.nbytes for one in pieces) > _MOST:
        del pieces[0]  # the oldest; it is freed when nobody refers to it any more
    return piece[:size].view(kind).reshape(shape)
