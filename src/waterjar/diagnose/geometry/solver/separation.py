"""Linear separability of projected points, compiled: the smallest number of dimensions in which they are separable.

Is there a w with y_i w . z_i > 0 for all i? Project e = (0, ..., 0, 1) on the cone of the (y_i z_i / |z_i|, 1): the
residual r is zero iff there is none; else -r without its last coordinate is such a w, with the margin |r| / sqrt(1 -
|r|^2). The active set of `projection` does it, and stops as soon as its present r separates.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver.compiled import allocating, entry, inner
from waterjar.diagnose.geometry.solver.layout import EXACT, MEMBERS, QUEUE, ROWS, Floats, Integers
from waterjar.diagnose.geometry.solver.problem import Problem, Work, workspace
from waterjar.diagnose.geometry.solver.projection import SEPARABLE, STOPPED, active_set, begin


@inner
def _cone_points(
    z: Floats, y: Floats, owner: Integers, dimension: int, bias: bool, scale: Floats, rows: Floats, columns: Floats
) -> bool:
    """Rows (point, dimension + bias + 1) = (y z, y bias, 1), both parts of the length 1 / sqrt(2); and transposed.

    False: a point is zero, on no side of any hyperplane.
    """
    points, last, half = z.shape[1], columns.shape[0] - 1, math.sqrt(0.5)
    for i in range(points):
        scale[i] = 0.0
    for d in range(dimension):
        for i in range(points):
            scale[i] += z[d, i] * z[d, i]
    constant = 0.0
    if bias:  # any constant does; of the points' size it is well conditioned
        for i in range(points):
            constant += scale[i] / points
        constant = constant if constant > 0.0 else 1.0
    for i in range(points):
        if scale[i] + constant == 0.0:
            return False
        scale[i] = half * y[owner[i]] / math.sqrt(scale[i] + constant)
    for d in range(dimension):
        for i in range(points):
            columns[d, i] = scale[i] * z[d, i]
    if bias:
        for i in range(points):
            columns[dimension, i] = scale[i] * math.sqrt(constant)
    for i in range(points):
        columns[last, i] = half
        for d in range(last + 1):
            rows[i, d] = columns[d, i]
    return True


@allocating
def _separable(
    z: Floats,
    y: Floats,
    owner: Integers,
    offsets: Integers,
    dimension: int,
    bias: bool,
    start: int,
    room: Floats,
    work: Work,
) -> tuple[bool, int]:
    """Whether the first rows of z are separable, and the number of members, for the next start."""
    points, size = z.shape[1], dimension + 1 + (1 if bias else 0)
    rows = room[0, : points * size].reshape((points, size))
    columns = room[1, : points * size].reshape((size, points))
    if not _cone_points(z, y, owner, dimension, bias, work.g, rows, columns):
        return False, 0
    unit = np.zeros(size)
    unit[size - 1] = 1.0
    same, positive = np.full(points, math.sqrt(0.5)), np.ones(y.size)  # the signs are in the rows
    none = np.empty((0, 0), np.float32)
    basis, r = work.basis[:size], work.r[:size]
    here = Work(
        work.factor,
        work.v,
        work.ids,
        basis,
        work.g,
        work.bits,
        work.refused,
        r,
        work.violation,
        work.number,
        work.number_bits,
        work.h_coarse,
        work.g_coarse,
        work.bits_coarse,
        work.number_coarse,
        work.number_bits_coarse,
        work.mixture,
    )
    k, end = 0, STOPPED
    for mode in (ROWS, EXACT):  # the second only where the first cannot tell
        if end == STOPPED:
            if mode == EXACT:
                here, start = workspace(EXACT, points, size, y.size, min(points, size)), 0
            of = Problem(mode, rows, columns, none, same, unit, 1.0, positive, owner, offsets)
            k, end = active_set(of, True, False, begin(of, start, here), here)
            k = k if mode == ROWS else 0
    return end == SEPARABLE, k


@entry
def smallest_separable(
    z: Floats, y: Floats, owner: Integers, offsets: Integers, bias: bool, low: int, first: int, found: Integers
) -> int:
    """Per trial, the smallest dimension in which the points are separable; the number of tests that it took.

    z (trial, dimension, point), y (trial, manifold). Known: they are not in `low` dimensions. Begin with `first`. If
    they are in none, it is one more than z has. Since a hyperplane in n dimensions also is one in n + 1, bisection
    finds it, with steps from `first` to begin with.
    """
    width, points = z.shape[1], z.shape[2]
    work = workspace(ROWS, points, width + 2, y.shape[1], min(points, width + 2))
    room = np.empty((2, points * (width + 2)))
    tests = 0
    for trial in range(z.shape[0]):
        below, above, step, k = low, width + 1, max(1, int(0.8 * math.sqrt(first))), 0
        some_are, some_are_not = False, False
        while above - below > 1:
            if some_are and some_are_not:
                at = (below + above) // 2
            elif some_are:
                at = max(below + 1, above - step)
                step *= 2
            elif some_are_not:
                at = min(above - 1, below + step)
                step *= 2
            else:
                at = min(max(first, below + 1), above - 1)
            for a in range(k):
                work.ids[QUEUE, a] = work.ids[MEMBERS, a]
            are, k = _separable(z[trial], y[trial], owner, offsets, at, bias, k, room, work)
            tests += 1
            if are:
                above, some_are = at, True
            else:
                below, some_are_not = at, True
        found[trial] = above
    return tests
