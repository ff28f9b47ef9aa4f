"""What a projection works on, and the room it works in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.solver.compiled import allocating
from waterjar.diagnose.geometry.solver.lanes import WIDTH
from waterjar.diagnose.geometry.solver.layout import EXACT, ROWS, VECTORS, Coarse, Floats, Integers


class Work(NamedTuple):
    """Room for one problem after the other: in small problems, allocating it would take most of the time."""

    factor: Floats  # (member, member) upper triangular, and some rows and columns to work with
    v: Floats  # (C ... Z, member)
    ids: Integers  # (MEMBERS ... QUEUE, member or manifold)
    basis: Floats  # EXACT: (member + 2, dimension) orthonormal, t, and one row to work with; ROWS: (dimension, member);
    # GRAM: (member, WIDTH), see `panels`
    g: Floats  # (point)
    bits: Integers  # the memory of g, seen as integers
    refused: Integers  # (point) those that depend on the members
    r: Floats  # (dimension) the residual
    violation: Integers  # (manifold) the largest, as bits
    number: Floats  # one number ...
    number_bits: Integers  # ... and its memory
    h_coarse: Coarse  # (point) u . t in single precision
    g_coarse: Coarse  # and the same four in single precision
    bits_coarse: NDArray[np.int32]
    number_coarse: Coarse
    number_bits_coarse: NDArray[np.int32]
    mixture: Floats  # (manifold, member) anchors, in the coordinates of the factor


class Problem(NamedTuple):
    """One t and one y."""

    mode: int
    table: Floats  # the Gram matrix (point, point), or the points (point, dimension)
    columns: Floats  # the table's transpose
    coarse: Coarse  # GRAM: the table in half the bytes, to find violators with
    h: Floats  # (point) u . t
    t: Floats  # (dimension)
    scale: float  # |t|
    y: Floats  # (manifold)
    owner: Integers  # (point) its manifold
    offsets: Integers  # (manifold + 1) where its points begin


@allocating
def workspace(mode: int, points: int, dimension: int, manifolds: int, room: int) -> Work:
    """Allocate for problems of these sizes, and supports of at most `room` points."""
    wide = room + 9 - (room + 8) % 2  # an odd length: rows of the factor start in different sets of the cache
    g, number = np.empty(points), np.empty(1)
    g_coarse, number_coarse = np.empty(points, np.float32), np.empty(1, np.float32)
    basis = np.empty((room, WIDTH))
    if mode == EXACT:
        basis = np.empty((room + 2, dimension))
    elif mode == ROWS:
        basis = np.empty((dimension, room))
    return Work(
        np.empty((room + WIDTH, wide)),
        np.empty((VECTORS, room)),
        np.empty((2, max(room, 2 * manifolds)), np.int64),
        basis,
        g,
        g.view(np.int64),
        np.empty(points, np.int64),
        np.empty(dimension),
        np.empty(manifolds, np.int64),
        number,
        number.view(np.int64),
        np.empty(points, np.float32),
        g_coarse,
        g_coarse.view(np.int32),
        number_coarse,
        number_coarse.view(np.int32),
        np.zeros((manifolds, wide)),
    )
