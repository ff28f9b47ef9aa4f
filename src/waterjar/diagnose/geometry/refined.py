"""Projections whose coefficients cancel: solved again with twice the digits, from the points themselves.

Where classes have nearly collapsed, coefficients of 1e8 |t| cancel, and rounding one of them to float64 moves the
projection by more than it may be off. So coefficients and residual are kept as sums of two float64 each (Dekker 1971).
The support is solved by the augmented system,

    r + A beta = t,   A' r = 0,

refined with residuals in that precision (Bjorck 1967; Higham 2002, section 20.5): a QR factor of float64 is enough for
the corrections. Around it is the active set of Lawson and Hanson (1974), one point at a time. It is slow, and rare.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

from waterjar.diagnose.geometry.solver.twofold import correct, lacking, multiply

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SOLVED = 1e-13  # violations below this share of |t| are none
_ROUNDS = 60  # of the active set
_STEPS = 20  # of refinement
_DEPENDENT = 1e-15  # a smaller diagonal of the factor is rounding
_CONVERGED = 1e-20  # what the augmented system may be off, as a share of |t|


class Pair(NamedTuple):
    """A sum of two arrays, the second one what the first has no digits for."""

    high: Floats
    low: Floats


class Refined(NamedTuple):
    """One projection."""

    members: Integers
    """the support, sorted"""
    beta: Floats
    """its coefficients, rounded; of unit vectors, and positive"""
    p: Floats
    """(dimension)"""
    g: Floats
    """(point) u . (t - p), with the signs of the dichotomy"""
    residual: float
    """largest violation of the KKT conditions, divided by |t|"""


def two_sum(a: Floats, b: Floats) -> Pair:
    """A + b without error (Knuth)."""
    total = a + b
    back = total - a
    return Pair(total, (a - (total - back)) + (b - back))


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs."""
    high, low = two_sum(a.high, b.high)
    return _short(high, low + (a.low + b.low))


def product(matrix: Floats, x: Pair) -> Pair:
    """Matrix (row, column) times x (column); the matrix is quickest where rows are contiguous."""
    made = np.empty((2, len(matrix)))
    multiply(np.ascontiguousarray(matrix), np.ascontiguousarray(x.high), np.ascontiguousarray(x.low), made)
    return Pair(made[0], made[1])


def _short(high: Floats, low: Floats) -> Pair:
    total = high + low
    return Pair(total, low - (total - high))


def least_squares(a: Floats, t: Floats) -> tuple[Pair, Pair] | None:
    """Coefficients of the columns of a, and t - a beta, to about 1e-30; None where columns are dependent."""
    q, r = np.linalg.qr(a)
    diagonal = np.abs(np.diag(r))
    if diagonal.min(initial=1.0) <= _DEPENDENT:
        return None
    rows, columns = a.shape
    along_a, across_a, t = np.ascontiguousarray(a), np.ascontiguousarray(a.T), np.ascontiguousarray(t)
    beta, rest, room = np.zeros((2, columns)), np.stack([t, np.zeros(rows)]), np.empty((4, max(rows, columns)))
    across, left, before = np.empty(columns), np.empty(rows), math.inf
    for _ in range(_STEPS):
        off = lacking(along_a, across_a, t, beta, rest, across, left, room)
        if not off < 0.5 * before:
            break
        before, along = off, q.T @ left
        h = -_solved(r, across, transposed=True)
        correct(beta, _solved(r, along - h))
        correct(rest, q @ h + (left - q @ along))
    return (Pair(*beta), Pair(*rest)) if before <= _CONVERGED * float(np.abs(t).max()) else None


def _solved(r: Floats, b: Floats, *, transposed: bool = False) -> Floats:
    """The solution x of r x = b, or of r' x = b, r being upper triangular; scipy's own way there takes far longer."""
    if len(b) == 0:
        return b
    if r.flags.f_contiguous:
        return np.asarray(dtrtrs(r, b, trans=int(transposed))[0])
    return np.asarray(dtrtrs(r.T, b, lower=1, trans=int(not transposed))[0])  # LAPACK's order is the other one


def _minus(x: Pair) -> Pair:
    return Pair(-x.high, -x.low)


def refine(points: Floats, signs: Floats, t: Floats, members: Integers) -> Refined | None:
    """Project t on the cone of the rows of signs * points, beginning with a support; None where it has no end.

    points (point, dimension); signs (point) of -1 and +1.
    """
    powers = np.frexp(np.abs(points).max(axis=1))[1]
    rows = np.ldexp(signs[:, None] * points, -powers[:, None])  # near unit length, and not rounded
    lengths = np.sqrt(np.vecdot(rows, rows))
    lengths[lengths == 0.0] = 1.0
    scale = float(np.sqrt(t @ t))
    found = _without_negative(rows, t, list(members))
    for _ in range(_ROUNDS):
        if found is None:
            return None
        support, beta, rest = found
        g = product(rows, rest).high / lengths
        residual = max(float(g.max()), float(np.abs(g[support]).max(initial=0.0))) / scale
        if residual <= SOLVED:
            order = np.argsort(support)
            p = add(Pair(t, np.zeros(len(t))), _minus(rest)).high
            chosen = np.array(support, np.int64)[order]
            return Refined(chosen, beta.high[order] * lengths[chosen], p, g, residual)
        g[support] = -math.inf
        found = _to_boundary(rows, t, [*support, int(g.argmax())], np.append(beta.high, 0.0))
    return None


Solved = tuple[list[int], Pair, Pair]


def _without_negative(rows: Floats, t: Floats, support: list[int]) -> Solved | None:
    """Solve, without the points that turn negative."""
    while True:
        solved = least_squares(rows[support].T, t)
        if solved is None:
            return None
        positive = solved[0].high > 0.0
        if positive.all():
            return support, *solved
        support = [i for i, stays in zip(support, positive.tolist(), strict=True) if stays]


def _to_boundary(rows: Floats, t: Floats, support: list[int], beta: Floats) -> Solved | None:
    """Go from beta towards the solution; drop what reaches zero first, and again."""
    while True:
        solved = least_squares(rows[support].T, t)
        if solved is None:
            return None
        z = solved[0].high
        if (z > 0.0).all():
            return support, *solved
        share, negative = np.full(len(z), math.inf), z <= 0.0
        share[negative] = beta[negative] / np.maximum((beta - z)[negative], 1e-300)
        first = int(share.argmin())
        beta = beta + share[first] * (z - beta)
        support, beta = support[:first] + support[first + 1 :], np.delete(beta, first)
