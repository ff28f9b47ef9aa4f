"""Sums of two float64, compiled: see `refined`, which says what the two halves are."""

from __future__ import annotations

from typing import SupportsIndex

from waterjar.diagnose.geometry.solver.compiled import fma, inlined
from waterjar.diagnose.geometry.solver.layout import Floats


@inlined
def add(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """The sum of two pairs (Knuth)."""
    total = a + b
    back = total - a
    error = ((a - (total - back)) + (b - back)) + (a_low + b_low)
    whole = total + error
    return whole, error - (whole - total)


@inlined
def times(matrix: Floats, row: int, size: int, pair: Floats, room: Floats) -> tuple[float, float]:
    """The first numbers of one row of the matrix times those of a pair (2, column), with room of the same shape.

    Products have their errors by fma, and are added with those of sums (Knuth), halves of a row onto each other: loops
    then go element by element.
    """
    for c in range(size):
        a, b = matrix[row, c], pair[0, c]
        room[0, c] = a * b
        room[1, c] = fma(a, b, -room[0, c]) + a * pair[1, c]
    left = size
    while left > 1:
        half = left // 2
        for c in range(half):
            a, b = room[0, c], room[0, half + c]
            ab = a + b
            back = ab - a
            room[0, c] = ab
            room[1, c] = ((a - (ab - back)) + (b - back)) + (room[1, c] + room[1, half + c])
        if left % 2:
            room[0, half], room[1, half] = room[0, left - 1], room[1, left - 1]
        left = half + left % 2
    if size == 0:
        return 0.0, 0.0
    whole = room[0, 0] + room[1, 0]
    return whole, room[1, 0] - (whole - room[0, 0])


@inlined
def correct(pair: Floats, size: int, matrix: Floats, row: SupportsIndex) -> None:
    """Add a row of the matrix to the first elements of a pair (2, element)."""
    for i in range(size):
        pair[0, i], pair[1, i] = add(pair[0, i], pair[1, i], matrix[row, i], 0.0)
