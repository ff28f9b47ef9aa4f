"""Sums of two float64, compiled: see `refined`, which says what the two halves are."""

from __future__ import annotations

from typing import SupportsIndex

from waterjar.diagnose.geometry.solver.compiled import U, fma, inlined, inner
from waterjar.diagnose.geometry.solver.layout import Floats, Integers

ACROSS = 16
"""Columns that `times` takes at a time: what it has in the making then stays in the nearest cache."""


@inlined
def add(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """The sum of two pairs (Knuth)."""
    total = a + b
    back = total - a
    error = ((a - (total - back)) + (b - back)) + (a_low + b_low)
    whole = total + error
    return whole, error - (whole - total)


@inner
def times(
    matrix: Floats, ids: Integers, row: SupportsIndex, size: int, first: int, count: int, pair: Floats, room: Floats
) -> None:
    """Columns of the matrix, `count` from `first` on, each times the first `size` numbers of a pair (2, number).

    Number c goes with the row of the matrix that ids[row, c] names. The products come into room (2, number, ACROSS) as
    room[:, 0]. They have their errors by fma, and are added with those of sums (Knuth), halves of a column onto each
    other: loops go over columns, which stand side by side and do not wait for each other.
    """
    begin, width = U(first), U(count)
    for c in range(size):
        i, b, b_low = U(ids[row, c]), pair[0, c], pair[1, c]
        for j in range(width):
            a = matrix[i, begin + j]
            whole = a * b
            room[0, c, j] = whole
            room[1, c, j] = fma(a, b, -whole) + a * b_low
    left = size
    while left > 1:
        half = left // 2
        for c in range(half):
            for j in range(width):
                a, b = room[0, c, j], room[0, half + c, j]
                ab = a + b
                back = ab - a
                room[0, c, j] = ab
                room[1, c, j] = ((a - (ab - back)) + (b - back)) + (room[1, c, j] + room[1, half + c, j])
        if left % 2:
            for j in range(width):
                room[0, half, j], room[1, half, j] = room[0, left - 1, j], room[1, left - 1, j]
        left = half + left % 2
    for j in range(width):
        if size == 0:
            room[0, 0, j], room[1, 0, j] = 0.0, 0.0
        whole = room[0, 0, j] + room[1, 0, j]
        room[1, 0, j] -= whole - room[0, 0, j]
        room[0, 0, j] = whole


@inlined
def correct(pair: Floats, size: int, matrix: Floats, row: SupportsIndex) -> None:
    """Add a row of the matrix to the first elements of a pair (2, element)."""
    for i in range(size):
        pair[0, i], pair[1, i] = add(pair[0, i], pair[1, i], matrix[row, i], 0.0)
