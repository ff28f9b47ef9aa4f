"""From the draws' numbers to the measures and their standard errors, compiled: many small steps.

Most measures are ratios of means over draws, E[above] / E[below]; linearised, a draw adds (above - ratio below) /
E[below] to the error, with what it adds by moving the centres (`influence`). A plain mean has 1 below, and 0
for a draw that has no value.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver import anchors
from waterjar.diagnose.geometry.solver import influence as moved
from waterjar.diagnose.geometry.solver.anchors import BB, CC
from waterjar.diagnose.geometry.solver.compiled import entry, inner
from waterjar.diagnose.geometry.solver.layout import Flags, Floats, Integers

# Rows of values and errors: ratios, and then the alignments of centres.
CAPACITY, APPROX, DIMENSION, UTILITY, RADIUS, INACTIVE = np.arange(6)
AXIS, CENTER_AXIS, AXIS_INNER, CENTER_AXIS_INNER, CENTER, CENTER_INNER = np.arange(6, 12)
RATIOS, VALUES = 10, 12
# Layers of pairs.
CENTER_COSINES, CENTER_INNERS, FROM_DRAWS = np.arange(3)
PAIRS = 6
SAME = 1e-10
"""b - c below this share of b is rounding. Where c = b in exact arithmetic, 1e-16 to 1e-13 was seen (P from 20 to 100,
N from 9 to 51), and where it is not, but nearly so (P a little below 2 N), 1e-3 and more: this stands between them."""


@inner
def _terms(a: Floats, table: Floats, used: Flags, active: Flags, above: Floats, below: Floats) -> float:
    """Above and below (ratio, draw), without what moving the centres adds; returns the sum of b."""
    n, manifolds = active.shape
    total = 0.0
    for q in range(n):
        counted, active_ones = 0, 0
        for m in range(manifolds):
            counted += 1 if used[q, m] else 0
            active_ones += 1 if active[q, m] else 0
        b, c = table[q, BB], table[q, CC]
        total += b
        above[CAPACITY, q], below[CAPACITY, q] = manifolds, a[q]
        above[APPROX, q], below[APPROX, q] = counted, c
        above[DIMENSION, q], below[DIMENSION, q] = b, counted
        above[UTILITY, q], below[UTILITY, q] = c, a[q]
        above[RADIUS, q], below[RADIUS, q] = c, b - c
        above[INACTIVE, q], below[INACTIVE, q] = 1.0 - active_ones / manifolds, 1.0
        for k in range(AXIS, RATIOS):
            above[k, q], below[k, q] = table[q, anchors.AXIS_COSINE + k - AXIS], 1.0
        for k in range(RATIOS):
            if math.isnan(above[k, q]):
                above[k, q], below[k, q] = 0.0, 0.0
    return total


@inner
def _add_shift(shift: Floats, above: Floats, below: Floats) -> None:
    """What a draw adds by moving the centres, shift (measure, draw)."""
    for q in range(shift.shape[1]):
        b, c = shift[moved.B, q], shift[moved.C, q]
        above[DIMENSION, q] += b
        above[UTILITY, q] += c
        above[RADIUS, q] += c
        below[APPROX, q] += c
        below[RADIUS, q] += b - c
        above[AXIS, q] += shift[moved.AXIS_COSINE, q]
        above[CENTER_AXIS, q] += shift[moved.COSINE, q]
        above[AXIS_INNER, q] += shift[moved.AXIS_INNER, q]
        above[CENTER_AXIS_INNER, q] += shift[moved.INNER, q]


@inner
def _error(influence: Floats, paired: bool) -> float:
    """Standard error of a mean from what each draw adds to it, their mean being zero; one pair alone has none."""
    step = 2 if paired else 1
    count, total = influence.size // step, 0.0
    for q in range(count):
        one = influence[q] if not paired else 0.5 * (influence[2 * q] + influence[2 * q + 1])
        total += one * one
    return math.sqrt(total / (count * (count - 1.0))) if count > 1 else math.nan


@inner
def _pairs(center: Floats, draws: Integers, sums: Floats, pairs: Floats, values: Floats) -> None:
    """Means by pairs (layer, manifold, manifold), and the means of those of centres over pairs that have one."""
    manifolds = draws.size
    cosine, product, cosines, products = 0.0, 0.0, 0, 0
    for m in range(manifolds):
        for n in range(manifolds):
            lengths = math.sqrt(center[m, m]) * math.sqrt(center[n, n])
            there = m != n and draws[m] > 0 and draws[n] > 0  # a manifold is no pair with itself
            pairs[CENTER_COSINES, m, n] = center[m, n] / lengths if there and lengths > 0.0 else math.nan
            pairs[CENTER_INNERS, m, n] = abs(center[m, n]) if there else math.nan
            for k in range(PAIRS - FROM_DRAWS):
                count = sums[min(anchors.AXIS_PAIRS + k, anchors.PAIRS), m, n]
                pairs[FROM_DRAWS + k, m, n] = sums[k, m, n] / count if m != n and count > 0.0 else math.nan
            if m < n and there:
                product += pairs[CENTER_INNERS, m, n]
                products += 1
                if lengths > 0.0:
                    cosine += pairs[CENTER_COSINES, m, n]
                    cosines += 1
    values[CENTER] = cosine / cosines if cosines > 0 else math.nan
    values[CENTER_INNER] = product / products if products > 0 else math.nan


@entry
def summarise(
    a: Floats,
    table: Floats,
    used: Flags,
    active: Flags,
    center: Floats,
    draws: Integers,
    parts: Floats,
    sums: Floats,
    shift: Floats,
    paired: bool,
    values: Floats,
    errors: Floats,
    pairs: Floats,
    each: Floats,
) -> None:
    """Write values and errors (row), pairs (layer, manifold, manifold), and each (3, manifold).

    The last are dimension, radius and share of inactive draws. table, parts and sums as of `measure_draws`; draws
    (manifold): how many are used; shift (measure, draw); paired: draws 2k and 2k + 1 are not independent.
    """
    n, manifolds = active.shape
    above, below, influence, under = np.empty((RATIOS, n)), np.empty((RATIOS, n)), np.empty(n), np.empty(RATIOS)
    sum_of_b = _terms(a, table, used, active, above, below)
    for k in range(RATIOS):
        over, under[k] = 0.0, 0.0
        for q in range(n):
            over += above[k, q]
            under[k] += below[k, q]
        if not under[k] > (SAME * sum_of_b if k == RADIUS else 0.0):
            under[k] = math.nan
        values[k] = over / under[k]
    _add_shift(shift, above, below)
    for k in range(RATIOS):
        for q in range(n):
            influence[q] = (above[k, q] - values[k] * below[k, q]) * (n / under[k])
        errors[k] = _error(influence, paired)
    radius = math.sqrt(values[RADIUS]) if values[RADIUS] >= 0.0 else math.nan
    errors[RADIUS] /= 2.0 * radius if radius > 0.0 else math.nan
    values[RADIUS] = radius
    if math.isnan(radius):  # (1 + radius^-2) / dimension
        values[APPROX] = math.nan
    _pairs(center, draws, sums, pairs, values)
    for k in range(CENTER, VALUES):
        column, total = anchors.CENTER_COSINE + k - CENTER, 0.0
        for q in range(n):
            total += table[q, column]
        for q in range(n):
            influence[q] = (n - 1.0) * (total / n - table[q, column])  # jackknife
        errors[k] = _error(influence, paired)
    for k in range(VALUES):
        if math.isnan(values[k]):
            errors[k] = math.nan
    for m in range(manifolds):
        b, c = parts[0, m] / max(draws[m], 1), parts[1, m] / max(draws[m], 1)
        square = c / (b - c) if b - c > SAME * abs(b) and not math.isnan(radius) else math.nan
        each[0, m] = b if draws[m] > 0 else math.nan
        each[1, m] = math.sqrt(square) if square >= 0.0 else math.nan
        total = 0.0
        for q in range(n):
            total += 1.0 if active[q, m] else 0.0
        each[2, m] = 1.0 - total / n
