"""A matrix times a vector with twice the digits, compiled: see `refined`, which says what the two halves are."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.geometry.solver.compiled import entry, inlined, inner
from waterjar.diagnose.geometry.solver.layout import Floats

SPLITTER = 2.0**27 + 1.0


@inlined
def _sum(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """The sum of two pairs."""
    total = a + b
    back = total - a
    error = ((a - (total - back)) + (b - back)) + (a_low + b_low)
    whole = total + error
    return whole, error - (whole - total)


@inner
def _multiply(matrix: Floats, high: Floats, low: Floats, into: Floats, room: Floats) -> None:
    """`multiply`, with room (2, column at least) to work in."""
    columns = matrix.shape[1]
    for row in range(matrix.shape[0]):
        for c in range(columns):
            a, b = matrix[row, c], high[c]
            ab = a * b
            a_high = SPLITTER * a - (SPLITTER * a - a)
            b_high = SPLITTER * b - (SPLITTER * b - b)
            a_low, b_low = a - a_high, b - b_high
            room[0, c] = ab
            room[1, c] = (((a_high * b_high - ab) + a_high * b_low + a_low * b_high) + a_low * b_low) + a * low[c]
        left = columns
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
        into[0, row], into[1, row] = 0.0, 0.0
        if columns:
            into[0, row] = room[0, 0] + room[1, 0]
            into[1, row] = room[1, 0] - (into[0, row] - room[0, 0])


@entry
def multiply(matrix: Floats, high: Floats, low: Floats, into: Floats) -> None:
    """Write matrix (row, column) times high + low (column) as into (2, row): what float64 holds, and what it does not.

    Products are taken apart without error (Dekker, with Veltkamp's halves) and added with their errors (Knuth), halves
    of a row onto each other, so that loops go element by element.
    """
    _multiply(matrix, high, low, into, np.empty((2, matrix.shape[1])))


@entry
def lacking(
    a: Floats, across: Floats, t: Floats, beta: Floats, rest: Floats, found: Floats, left: Floats, room: Floats
) -> float:
    """Write what the augmented system lacks: found (column) = A' r, left (row) = t - r - A beta; return the largest.

    a (row, column), and across, which is A' with contiguous rows; beta (2, column) and rest (2, row) are pairs.
    """
    most = 0.0
    _multiply(across, rest[0], rest[1], room[:2, : found.size], room[2:])
    for c in range(found.size):
        found[c] = room[0, c]
        most = max(most, abs(found[c]))
    _multiply(a, beta[0], beta[1], room[:2, : left.size], room[2:])
    for d in range(left.size):
        high, low = _sum(rest[0, d], rest[1, d], room[0, d], room[1, d])
        left[d], _ = _sum(t[d], 0.0, -high, -low)
        most = max(most, abs(left[d]))
    return most


@entry
def correct(pair: Floats, by: Floats) -> None:
    """Add `by` (element) to a pair (2, element)."""
    for i in range(by.size):
        pair[0, i], pair[1, i] = _sum(pair[0, i], pair[1, i], by[i], 0.0)
