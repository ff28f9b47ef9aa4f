"""The active set of `refined`, compiled.

A QR factor of float64 follows the support, point by point; it only has to be good enough for corrections.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver.compiled import entry, fma, inner
from waterjar.diagnose.geometry.solver.factor import delete, dot, orthogonalise, solve, substitute
from waterjar.diagnose.geometry.solver.lanes import WIDTH
from waterjar.diagnose.geometry.solver.layout import COLUMN, EXACT, INVERSE, MEMBERS, VECTORS, C, Floats, Integers, Z
from waterjar.diagnose.geometry.solver.twofold import ACROSS, add, correct, times

SOLVED = 1e-13  # violations below this share of |t| are none
DEPENDENT_TWOFOLD = 1e-15  # a smaller distance from the span of the members is rounding
CONVERGED = 1e-20  # what the augmented system may be off, as a share of |t|
STEPS = 20  # of refinement


@inner
def _take_in(
    rows: Floats, i: int, k: int, columns: Floats, factor: Floats, v: Floats, ids: Integers, basis: Floats
) -> bool:
    """Make point i a member after k others; False where it depends on them."""
    last = basis.shape[0] - 1
    if k == v.shape[1]:
        return False
    length = math.sqrt(orthogonalise(rows, i, k, v, basis))
    if not length > DEPENDENT_TWOFOLD:
        return False
    for d in range(basis.shape[1]):
        basis[k, d], columns[d, k] = basis[last, d] / length, rows[i, d]
    for a in range(k):
        factor[a, k] = v[COLUMN, a]
        factor[k, a] = v[COLUMN, a]
    factor[k, k], v[INVERSE, k] = length, 1.0 / length
    ids[MEMBERS, k] = i
    return True


@inner
def _drop(k: int, q: int, columns: Floats, factor: Floats, v: Floats, ids: Integers, basis: Floats) -> None:
    """Take member q of k out."""
    delete(EXACT, k, q, factor, v, ids, basis)
    for d in range(columns.shape[0]):
        for a in range(q, k - 1):
            columns[d, a] = columns[d, a + 1]


@inner
def _lacking(
    rows: Floats, t: Floats, k: int, columns: Floats, v: Floats, ids: Integers, basis: Floats, beta: Floats,
    rest: Floats, every: Integers, room: Floats,
) -> float:  # fmt: skip
    """What the augmented system lacks: A' r into COLUMN, t - r - A beta into the basis' last row; the largest of it."""
    most, last = 0.0, basis.shape[0] - 1
    for first in range(0, k, ACROSS):
        count = min(ACROSS, k - first)
        times(columns, every, 0, t.size, first, count, rest, room)
        for a in range(count):
            v[COLUMN, first + a] = room[0, 0, a]
            most = max(most, abs(room[0, 0, a]))
    for first in range(0, t.size, ACROSS):
        count = min(ACROSS, t.size - first)
        times(rows, ids, MEMBERS, k, first, count, beta, room)
        for j in range(count):
            d = first + j
            high, low = add(rest[0, d], rest[1, d], room[0, 0, j], room[1, 0, j])
            basis[last, d], _ = add(t[d], 0.0, -high, -low)
            most = max(most, abs(basis[last, d]))
    return most


@inner
def _least_squares(
    rows: Floats, t: Floats, k: int, columns: Floats, factor: Floats, v: Floats, ids: Integers, basis: Floats,
    beta: Floats, rest: Floats, every: Integers, room: Floats,
) -> bool:  # fmt: skip
    """Solve r + A beta = t, A' r = 0 for the members, to about 1e-30; whether that comes to an end."""
    last, largest, before = basis.shape[0] - 1, 0.0, math.inf
    for d in range(t.size):
        rest[0, d], rest[1, d] = t[d], 0.0
        largest = max(largest, abs(t[d]))
    for a in range(k):
        beta[0, a], beta[1, a] = 0.0, 0.0
    for _ in range(STEPS):
        off = _lacking(rows, t, k, columns, v, ids, basis, beta, rest, every, room)
        if not off < 0.5 * before:
            break
        before = off
        substitute(k, factor, v)
        for a in range(k):
            v[C, a] = dot(basis, a, last) + v[COLUMN, a]
        solve(k, factor, v)
        for a in range(k):
            for d in range(t.size):
                basis[last, d] = fma(-v[C, a], basis[a, d], basis[last, d])
        correct(beta, k, v, Z)
        correct(rest, t.size, basis, last)
    return before <= CONVERGED * largest


@inner
def _without_negative(
    rows: Floats, t: Floats, k: int, columns: Floats, factor: Floats, v: Floats, ids: Integers, basis: Floats,
    beta: Floats, rest: Floats, every: Integers, room: Floats,
) -> int:  # fmt: skip
    """Solve, and drop every member that turns negative, until there is none; how many are left, -1 without an end."""
    while _least_squares(rows, t, k, columns, factor, v, ids, basis, beta, rest, every, room):
        before = k
        for a in range(before - 1, -1, -1):
            if not beta[0, a] > 0.0:
                _drop(k, a, columns, factor, v, ids, basis)
                k -= 1
        if k == before:
            return k
    return -1


@inner
def _to_boundary(
    rows: Floats, t: Floats, k: int, now: Floats, columns: Floats, factor: Floats, v: Floats, ids: Integers,
    basis: Floats, beta: Floats, rest: Floats, every: Integers, room: Floats,
) -> int:  # fmt: skip
    """Go from `now` towards the solution; drop what reaches zero first, and again; how many are left, -1 likewise."""
    while _least_squares(rows, t, k, columns, factor, v, ids, basis, beta, rest, every, room):
        first, share = -1, math.inf
        for a in range(k):
            if beta[0, a] <= 0.0:
                ratio = now[a] / max(now[a] - beta[0, a], 1e-300)
                if first < 0 or ratio < share:
                    first, share = a, ratio
        if first < 0:
            return k
        for a in range(k):
            now[a] += share * (beta[0, a] - now[a])
        for a in range(first, k - 1):
            now[a] = now[a + 1]
        _drop(k, first, columns, factor, v, ids, basis)
        k -= 1
    return -1


@inner
def _violations(
    across: Floats, lengths: Floats, k: int, ids: Integers, rest: Floats, g: Floats, every: Integers, room: Floats
) -> tuple[float, int]:
    """Write g; return the largest violation of the conditions, and of points outside the support the one with most."""
    worst, most, point = -math.inf, -math.inf, -1
    for first in range(0, g.size, ACROSS):
        count = min(ACROSS, g.size - first)
        times(across, every, 0, across.shape[0], first, count, rest, room)
        for j in range(count):
            i = first + j
            g[i] = room[0, 0, j] / lengths[i]
            worst = max(worst, g[i])
    for a in range(k):
        worst = max(worst, abs(g[ids[MEMBERS, a]]))
    for i in range(g.size):
        if g[i] > most:
            is_member = False
            for a in range(k):
                is_member |= ids[MEMBERS, a] == i
            if not is_member:
                most, point = g[i], i
    return worst, point


@entry
def refine_support(
    rows: Floats, across: Floats, lengths: Floats, t: Floats, scale: float, rounds: int, support: Integers,
    members: Integers, beta: Floats, p: Floats, g: Floats,
) -> tuple[int, float]:  # fmt: skip
    """Project t on the cone of the rows (point, dimension), beginning with a support; scale = |t|.

    `across` are the rows once more, as (dimension, point).

    Written: `members` (slot); beta (2, slot), which are pairs; p (dimension); g (point) = u . (t - p).
    Returns how many members there are, or -1 if this has no end, and the largest violation as a share of |t|.
    """
    slots, dimension = beta.shape[1], rows.shape[1]
    factor, v = np.empty((slots + WIDTH, slots + WIDTH)), np.zeros((VECTORS, slots))
    ids, basis = np.empty((2, slots), np.int64), np.empty((slots + 1, dimension))
    columns, now, k = np.empty((dimension, slots)), np.empty(slots), 0
    rest, every = np.empty((2, dimension)), np.arange(dimension).reshape(1, dimension)
    room = np.empty((2, max(dimension, slots, 1), ACROSS))
    for i in support:
        if not _take_in(rows, i, k, columns, factor, v, ids, basis):
            return -1, math.inf
        k += 1
    k = _without_negative(rows, t, k, columns, factor, v, ids, basis, beta, rest, every, room)
    for _ in range(rounds):
        if k < 0:
            break
        worst, point = _violations(across, lengths, k, ids, rest, g, every, room)
        if worst <= SOLVED * scale:
            for a in range(k):
                members[a] = ids[MEMBERS, a]
            for d in range(dimension):
                p[d], _ = add(t[d], 0.0, -rest[0, d], -rest[1, d])
            return k, worst / scale
        if point < 0 or not _take_in(rows, point, k, columns, factor, v, ids, basis):
            break
        for a in range(k):
            now[a] = beta[0, a]
        now[k] = 0.0
        k = _to_boundary(rows, t, k + 1, now, columns, factor, v, ids, basis, beta, rest, every, room)
    return -1, math.inf
