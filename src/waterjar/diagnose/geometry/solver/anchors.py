"""The measures of anchors, compiled, from inner products alone.

An anchor is a mixture of few unit vectors, s = sum_a w_a u_a, so that with the products of the points everything below
costs what the supports cost, whatever the dimension. Matrices of one draw, all (manifold, manifold):

    own = S S',   mixed = S S0',   center = S0 S0',   axis = S1 S1' = own - mixed - mixed' + center
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver.compiled import U, allocating, entry, fma, inner
from waterjar.diagnose.geometry.solver.layout import Flags, Floats, Integers

CUT = 1e-10  # eigenvalues below this are zero, in the pseudo-inverse of a matrix with unit diagonal
ROUNDING = 1e-13  # an axis whose square is below this share of its anchor's and centre's is zero
EPSILON = 2.2e-16

# Columns of the table of draws.
BB, CC = np.arange(0, 2)  # b and c
AXIS_COSINE, CENTER_AXIS_COSINE, AXIS_INNER, CENTER_AXIS_INNER = np.arange(2, 6)  # means over pairs
CENTER_COSINE, CENTER_INNER = np.arange(6, 8)  # of the centres without this draw: for their standard errors
COLUMNS = 8
# Layers of the sums over draws (.., manifold, manifold).
AXIS_COSINES, CENTER_AXIS_COSINES, AXIS_INNERS, CENTER_AXIS_INNERS = np.arange(4)
# Over how many draws the first, the second, the last two of these are:
AXIS_PAIRS, CENTER_AXIS_PAIRS, PAIRS = np.arange(4, 7)
LAYERS = 7


@entry
def mean_anchors(
    count: Integers, members: Integers, weights: Floats, owner: Integers, draws: Integers, units: Floats, center: Floats
) -> None:
    """S0 (manifold, dimension): the mean over draws of the anchors; `draws` (manifold) of them count for each."""
    total = np.zeros(owner.size)
    for q in range(count.size):
        for a in range(U(count[q])):
            total[U(members[q, a])] += weights[q, a]
    for i in range(U(owner.size)):
        if total[i] != 0.0:
            m = U(owner[i])
            w = total[i] / draws[m]
            for d in range(U(units.shape[1])):
                center[m, d] = fma(w, units[i, d], center[m, d])


@entry
def center_products(
    products: Floats,
    count: Integers,
    members: Integers,
    weights: Floats,
    owner: Integers,
    to_center: Floats,
    mixed: Floats,
    along: Floats,
) -> None:
    """Add to mixed (draw, manifold, manifold) and along = S t (draw, manifold).

    products (draw, point) = u . t; to_center (point, manifold) = u . S0.
    """
    for q in range(count.size):
        for a in range(count[q]):
            i, w = U(members[q, a]), weights[q, a]
            m = U(owner[i])
            along[q, m] += w * products[q, i]
            for n in range(U(to_center.shape[1])):
                mixed[q, m, n] = fma(w, to_center[i, n], mixed[q, m, n])


@entry
def own_products(
    gram: Floats, count: Integers, members: Integers, weights: Floats, owner: Integers, own: Floats
) -> None:
    """Write own (draw, manifold, manifold), of any supports."""
    manifolds = own.shape[1]
    part = np.empty(manifolds)
    for q in range(count.size):
        own[q] = 0.0
        for a in range(count[q]):
            i = members[q, a]
            for n in range(manifolds):
                part[n] = 0.0
            for b in range(count[q]):
                part[owner[members[q, b]]] += weights[q, b] * gram[i, members[q, b]]
            for n in range(manifolds):
                own[q, owner[i], n] += weights[q, a] * part[n]


@inner
def _inverse_factor(matrix: Floats, size: int, cut: float, lower: Floats, inverse: Floats) -> bool:
    """L^-1 of matrix = L L'; False where an eigenvalue may be below the cut-off: they are at least 1 / |L^-1|^2."""
    zero, one, last = U(0), U(1), U(size)
    square = 0.0
    for a in range(last):
        for b in range(a):
            rest = matrix[a, b]
            for d in range(b):
                rest = fma(-lower[a, d], lower[b, d], rest)
            lower[a, b] = rest * inverse[b, b]
        rest = matrix[a, a]
        for d in range(a):
            rest = fma(-lower[a, d], lower[a, d], rest)
        if not rest > cut:
            return False
        lower[a, a] = math.sqrt(rest)
        inverse[a, a] = 1.0 / lower[a, a]
        square += inverse[a, a] * inverse[a, a]
    for a in range(one, last):  # row by row, so that columns do not wait for each other
        for b in range(a):
            inverse[a, b] = -lower[a, b] * inverse[b, b]
        for d in range(one, a):
            for b in range(zero, d):
                inverse[a, b] = fma(-lower[a, d], inverse[d, b], inverse[a, b])
        for b in range(a):
            inverse[a, b] *= inverse[a, a]
            square += inverse[a, b] * inverse[a, b]
    return square * cut < 1.0


@allocating
def _quadratic(matrix: Floats, size: int, v: Floats, cut: float, lower: Floats, inverse: Floats, out: Floats) -> float:
    """v' M^+ v of a positive semi-definite M with unit diagonal; M^+ v is added to `out`."""
    total = 0.0
    if _inverse_factor(matrix, size, cut, lower, inverse):
        for a in range(U(size)):
            part = 0.0
            for b in range(a + U(1)):
                part += inverse[a, b] * v[b]
            total += part * part
            for b in range(a + U(1)):
                out[b] += inverse[a, b] * part
        return total
    own = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            own[a, b] = matrix[a, b]
    values, vectors = np.linalg.eigh(own)
    for e in range(size):
        if values[e] > cut:
            part = 0.0
            for a in range(size):
                part += vectors[a, e] * v[a]
            total += part * part / values[e]
            for a in range(size):
                out[a] += vectors[a, e] * part / values[e]
    return total


@inner
def _unit_diagonal(matrix: Floats, v: Floats, least: Floats, size: int, roots: Floats) -> float:
    """Scale to unit diagonal, in place, which changes no v' M^+ v for v in the range; a row below `least` is zero.

    Writes the factors of rows into `roots`. Returns the largest rounding error that this leaves in the matrix.
    """
    worst = 0.0
    for a in range(U(size)):
        diagonal = matrix[a, a]
        if diagonal <= ROUNDING * least[a]:
            v[a], roots[a] = 0.0, 0.0
            for b in range(U(size)):
                matrix[a, b], matrix[b, a] = 0.0, 0.0
            matrix[a, a] = 1.0
        else:
            worst = max(worst, EPSILON * least[a] / diagonal)
            root = 1.0 / math.sqrt(diagonal)
            v[a] *= root
            roots[a] = root
            for b in range(U(size)):
                matrix[a, b] *= root
                matrix[b, a] *= root
    return worst


@entry
def measure_draws(
    own: Floats,
    mixed: Floats,
    center: Floats,
    along: Floats,
    used: Flags,
    draws: Integers,
    table: Floats,
    parts: Floats,
    solved: Floats,
    sums: Floats,
) -> None:
    """Fill the table (draw, column); add up the terms of b and c by manifold (2, manifold), and the sums by pairs.

    solved (draw, 2, manifold): the M^+ S1 t of b and of c.

    along (draw, manifold) = S1 t; used (draw, manifold): which rows count; draws (manifold): of how many draws its
    centre is the mean.
    """
    manifolds = center.shape[0]
    axis, both = np.empty((manifolds, manifolds)), np.empty((manifolds, manifolds))
    lower, inverse = np.empty((manifolds, manifolds)), np.empty((manifolds, manifolds))
    v, w, out, least = np.empty(manifolds), np.empty(manifolds), np.empty(manifolds), np.empty(manifolds)
    rows, roots, of_center = np.empty(manifolds, np.int64), np.empty(manifolds), np.empty(manifolds)
    whole = 0.0
    for m in range(manifolds):
        of_center[m] = 1.0 / math.sqrt(center[m, m]) if center[m, m] > 0.0 else 0.0
    for q in range(own.shape[0]):
        size = 0
        for m in range(manifolds):
            if used[q, m]:
                rows[size] = m
                size += 1
        for a in range(U(size)):
            m = U(rows[a])
            v[a] = w[a] = along[q, m]
            least[a] = own[q, m, m] + center[m, m]
            for b in range(U(size)):
                n = U(rows[b])
                axis[a, b] = own[q, m, n] - mixed[q, m, n] - mixed[q, n, m] + center[m, n]
                both[a, b] = axis[a, b] + center[m, n]
        whole += _pairs(axis, mixed[q], center, rows, size, least, of_center, roots, table[q], sums)
        _without(own[q], mixed[q], center, used[q], draws, roots, out, table[q])
        for which in range(2):
            matrix, along_it = (axis, v) if which == 0 else (both, w)
            cut = max(CUT, 10.0 * _unit_diagonal(matrix, along_it, least, size, roots))
            for a in range(size):
                out[a] = 0.0
            table[q, which] = _quadratic(matrix, size, along_it, cut, lower, inverse, out)
            for a in range(size):
                parts[which, rows[a]] += along_it[a] * out[a]
                solved[q, which, rows[a]] = roots[a] * out[a]
    for m in range(manifolds):
        for n in range(manifolds):
            for layer in range(AXIS_PAIRS, LAYERS):
                sums[layer, m, n] += whole
            if m < n:
                sums[AXIS_COSINES, m, n], sums[AXIS_INNERS, m, n] = sums[AXIS_COSINES, n, m], sums[AXIS_INNERS, n, m]


@inner
def _pairs(
    axis: Floats,
    mixed: Floats,
    center: Floats,
    rows: Integers,
    size: int,
    least: Floats,
    of_center: Floats,
    inverse: Floats,
    row: Floats,
    sums: Floats,
) -> float:
    """Alignments of one draw: axes with axes (m, n), n < m alone in the sums, and centre m with axis n.

    of_center (manifold), and room for `inverse`: 1 / length, 0 where there is none. Returns 1 if all pairs are there:
    they are then still to be counted.
    """
    with_axis, with_center, with_both = 0, 0, 0
    for a in range(size):
        inverse[a] = 1.0 / math.sqrt(axis[a, a]) if axis[a, a] > ROUNDING * least[a] else 0.0
        with_axis += 1 if inverse[a] > 0.0 else 0
        with_center += 1 if of_center[rows[a]] > 0.0 else 0
        with_both += 1 if inverse[a] > 0.0 and of_center[rows[a]] > 0.0 else 0
    whole = with_both == center.shape[0]
    cosine, cross_cosine, product, cross_product = 0.0, 0.0, 0.0, 0.0
    for a in range(U(size)):
        m = U(rows[a])
        for b in range(a):
            n = U(rows[b])
            value = abs(axis[a, b])
            sums[AXIS_INNERS, m, n] += value
            product += value
            value = axis[a, b] * inverse[a] * inverse[b]
            sums[AXIS_COSINES, m, n] += value
            cosine += value
            one, other = mixed[n, m] - center[m, n], mixed[m, n] - center[n, m]
            sums[CENTER_AXIS_INNERS, m, n] += abs(one)
            sums[CENTER_AXIS_INNERS, n, m] += abs(other)
            cross_product += abs(one) + abs(other)
            one, other = one * of_center[m] * inverse[b], other * of_center[n] * inverse[a]
            sums[CENTER_AXIS_COSINES, m, n] += one
            sums[CENTER_AXIS_COSINES, n, m] += other
            cross_cosine += one + other
            if not whole:
                both = 1.0 if inverse[a] > 0.0 and inverse[b] > 0.0 else 0.0
                sums[AXIS_PAIRS, m, n] += both
                sums[AXIS_PAIRS, n, m] += both
                sums[CENTER_AXIS_PAIRS, m, n] += 1.0 if of_center[m] > 0.0 and inverse[b] > 0.0 else 0.0
                sums[CENTER_AXIS_PAIRS, n, m] += 1.0 if of_center[n] > 0.0 and inverse[a] > 0.0 else 0.0
                sums[PAIRS, m, n] += 1.0
                sums[PAIRS, n, m] += 1.0
    of_axes, of_both, pairs = with_axis * (with_axis - 1), with_axis * with_center - with_both, size * (size - 1)
    row[AXIS_COSINE] = 2.0 * cosine / of_axes if of_axes > 0 else math.nan
    row[CENTER_AXIS_COSINE] = cross_cosine / of_both if of_both > 0 else math.nan
    row[AXIS_INNER] = 2.0 * product / pairs if pairs > 0 else math.nan
    row[CENTER_AXIS_INNER] = cross_product / pairs if pairs > 0 else math.nan
    return 1.0 if whole else 0.0


@inner
def _without(
    own: Floats, mixed: Floats, center: Floats, used: Flags, draws: Integers, f: Floats, inverse: Floats, row: Floats
) -> None:
    """Alignment of the centres if this draw had not been: S0 becomes f S0 - (f - 1) S with f = n / (n - 1).

    Room for f and for 1 / the length of what it becomes: a centre of zero has no direction.
    """
    manifolds = U(center.shape[0])
    for m in range(manifolds):
        f[m] = draws[m] / (draws[m] - 1.0) if used[m] and draws[m] > 1 else 1.0
        square = (
            f[m] * f[m] * center[m, m]
            - 2.0 * f[m] * (f[m] - 1.0) * mixed[m, m]
            + (f[m] - 1.0) * (f[m] - 1.0) * own[m, m]
        )
        inverse[m] = 1.0 / math.sqrt(square) if square > ROUNDING * f[m] * f[m] * center[m, m] else 0.0
    cosine, inner_product, pairs, counted = 0.0, 0.0, 0, 0
    for m in range(manifolds):
        for n in range(m):
            if draws[m] == 0 or draws[n] == 0:
                continue
            product = (
                f[m] * f[n] * center[m, n]
                - (f[m] - 1.0) * f[n] * mixed[m, n]
                - f[m] * (f[n] - 1.0) * mixed[n, m]
                + (f[m] - 1.0) * (f[n] - 1.0) * own[m, n]
            )
            inner_product += abs(product)
            counted += 1
            cosine += product * (inverse[m] * inverse[n])
            pairs += 1 if inverse[m] > 0.0 and inverse[n] > 0.0 else 0
    row[CENTER_COSINE] = cosine / pairs if pairs > 0 else math.nan
    row[CENTER_INNER] = inner_product / counted if counted > 0 else math.nan
