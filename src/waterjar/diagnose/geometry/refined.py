"""Projections whose coefficients cancel: solved again with twice the digits, from the points themselves.

Where classes have nearly collapsed, coefficients of 1e8 |t| cancel, and rounding one of them to float64 moves the
projection by more than it may be off. So coefficients and residual are kept as sums of two float64 each (Dekker 1971).
The support is solved by the augmented system,

    r + A beta = t,   A' r = 0,

refined with residuals in that precision (Bjorck 1967; Higham 2002, section 20.5): a QR factor of float64 is enough for
the corrections. Around it is the active set of Lawson and Hanson (1974), one point at a time. It is slow, and rare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.solver.refining import refine_support

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROUNDS = 60  # of the active set


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


class Scaled(NamedTuple):
    """Points of nearly unit length, not rounded."""

    rows: Floats
    """(point, dimension that is not zero in all of them)"""
    lengths: Floats
    """(point) those of the rows, 1 of a zero point"""
    alive: NDArray[np.bool_]
    """(dimension) whether it is one of the columns"""


def scaled(points: Floats) -> Scaled:
    """Points (point, dimension) as `refine` takes them: each divided by a power of two."""
    powers = np.frexp(np.abs(points).max(axis=1))[1]
    rows = np.ldexp(points, -powers[:, None])
    lengths = np.sqrt(np.vecdot(rows, rows))
    lengths[lengths == 0.0] = 1.0
    alive = rows.any(axis=0)
    return Scaled(np.ascontiguousarray(rows[:, alive]), lengths, alive)


def refine(of: Scaled, signs: Floats, t: Floats, members: Integers) -> Refined | None:
    """Project t on the cone of the points times their signs, beginning with a support; None where it has no end.

    signs (point) of -1 and +1.
    """
    rows = signs[:, None] * of.rows
    across, slots = np.ascontiguousarray(rows.T), min(rows.shape)
    support, beta, g = np.empty(slots, np.int64), np.empty((2, slots)), np.empty(len(rows))
    near, scale = t[of.alive], float(np.sqrt(t @ t))
    found, p = np.empty(len(near)), np.zeros(len(t))
    k, residual = refine_support(rows, across, of.lengths, near, scale, _ROUNDS, members, support, beta, found, g)
    if k < 0:
        return None
    p[of.alive] = found
    order = np.argsort(support[:k])
    chosen = support[order]
    return Refined(chosen, beta[0, order] * of.lengths[chosen], p, g, residual)
