"""The measures of anchors, compiled, from inner products alone.

An anchor is a mixture of few unit vectors, s = sum_a w_a u_a, so that with the products of the points everything below
costs what the supports cost, whatever the dimension. Matrices of one draw, all (manifold, manifold):

    own = S S',   mixed = S S0',   center = S0 S0',   axis = S1 S1' = own - mixed - mixed' + center
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry._compiled import allocating, entry, fma, inner

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

CUT = 1e-10  # eigenvalues below this are zero, in the pseudo-inverse of a matrix with unit diagonal
ROUNDING = 1e-13  # an axis whose square is below this share of its anchor's and centre's is zero
EPSILON = 2.2e-16

# Columns of the table of draws.
BB, CC = 0, 1  # b and c
AXIS_COSINE, CENTER_AXIS_COSINE = 2, 3  # means over pairs
AXIS_INNER, CENTER_AXIS_INNER = 4, 5
CENTER_COSINE, CENTER_INNER = 6, 7  # of the centres without this draw: for their standard errors
COLUMNS = 8
# Layers of the sums over draws (.., manifold, manifold).
AXIS_COSINES, CENTER_AXIS_COSINES, AXIS_INNERS, CENTER_AXIS_INNERS = 0, 1, 2, 3
AXIS_PAIRS, CENTER_AXIS_PAIRS, PAIRS, PAIRS_AGAIN = 4, 5, 6, 7  # over how many draws each of these sums is
LAYERS = 8


@entry
def anchor_weights(
    count: Integers, members: Integers, beta: Floats, owner: Integers, norms: Floats, weights: Floats, active: Flags
) -> None:
    """Weights (draw, slot) of unit vectors in the anchors: |beta_a| / (sum over the manifold of |beta| / |x|).

    `active` (draw, manifold): whether the manifold has any.
    """
    total = np.empty(active.shape[1])
    for q in range(count.size):
        for m in range(total.size):
            total[m] = 0.0
        for a in range(count[q]):
            i = members[q, a]
            total[owner[i]] += abs(beta[q, a]) / norms[i]
        for a in range(count[q]):
            weights[q, a] = abs(beta[q, a]) / total[owner[members[q, a]]]
        for m in range(total.size):
            active[q, m] = total[m] > 0.0


@entry
def mean_anchors(
    count: Integers, members: Integers, weights: Floats, owner: Integers, draws: Integers, units: Floats, center: Floats
) -> None:
    """S0 (manifold, dimension): the mean over draws of the anchors; `draws` (manifold) of them count for each."""
    total = np.zeros(owner.size)
    for q in range(count.size):
        for a in range(count[q]):
            total[members[q, a]] += weights[q, a]
    for i in range(owner.size):
        if total[i] != 0.0:
            m, w = owner[i], total[i] / draws[owner[i]]
            for d in range(units.shape[1]):
                center[m, d] = fma(w, units[i, d], center[m, d])


@entry
def inner_products(
    gram: Floats,
    products: Floats,
    count: Integers,
    members: Integers,
    weights: Floats,
    owner: Integers,
    to_center: Floats,
    own: Floats,
    mixed: Floats,
    along: Floats,
) -> None:
    """Add to own, mixed (draw, manifold, manifold) and along = S t (draw, manifold).

    products (draw, point) = u . t; to_center (point, manifold) = u . S0.
    """
    row = np.zeros(own.shape[1])
    for q in range(count.size):
        for a in range(count[q]):
            i, w = members[q, a], weights[q, a]
            m = owner[i]
            along[q, m] += w * products[q, i]
            for n in range(mixed.shape[2]):
                mixed[q, m, n] = fma(w, to_center[i, n], mixed[q, m, n])
            for b in range(a):
                j = members[q, b]
                row[owner[j]] += weights[q, b] * gram[i, j]
            own[q, m, m] += w * w * gram[i, i]
            for n in range(row.size):
                own[q, m, n] += w * row[n]
                own[q, n, m] += w * row[n]
                row[n] = 0.0


@inner
def _inverse_factor(matrix: Floats, size: int, cut: float, lower: Floats, inverse: Floats) -> bool:
    """L^-1 of matrix = L L'; False where an eigenvalue may be below the cut-off: they are at least 1 / |L^-1|^2."""
    for a in range(size):
        for b in range(a + 1):
            rest = matrix[a, b]
            for d in range(b):
                rest -= lower[a, d] * lower[b, d]
            if b < a:
                lower[a, b] = rest / lower[b, b]
            elif rest > cut:
                lower[a, a] = math.sqrt(rest)
            else:
                return False
    square = 0.0
    for b in range(size):
        inverse[b, b] = 1.0 / lower[b, b]
        square += inverse[b, b] * inverse[b, b]
        for a in range(b + 1, size):
            rest = 0.0
            for d in range(b, a):
                rest -= lower[a, d] * inverse[d, b]
            inverse[a, b] = rest / lower[a, a]
            square += inverse[a, b] * inverse[a, b]
    return square * cut < 1.0


@allocating
def _quadratic(matrix: Floats, size: int, v: Floats, cut: float, lower: Floats, inverse: Floats, out: Floats) -> float:
    """v' M^+ v of a positive semi-definite M with unit diagonal; M^+ v is added to `out`."""
    total = 0.0
    if _inverse_factor(matrix, size, cut, lower, inverse):
        for a in range(size):
            part = 0.0
            for b in range(a + 1):
                part += inverse[a, b] * v[b]
            total += part * part
            for b in range(a + 1):
                out[b] += inverse[a, b] * part
        return total
    values, vectors = np.linalg.eigh(matrix[:size, :size].copy())
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
    for a in range(size):
        diagonal = matrix[a, a]
        if diagonal <= ROUNDING * least[a]:
            v[a], roots[a] = 0.0, 0.0
            for b in range(size):
                matrix[a, b], matrix[b, a] = 0.0, 0.0
            matrix[a, a] = 1.0
        else:
            worst = max(worst, EPSILON * least[a] / diagonal)
            root = 1.0 / math.sqrt(diagonal)
            v[a] *= root
            roots[a] = root
            for b in range(size):
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
    """Fill the table (draw, column), the terms of b and c by manifold (draw, 2, manifold), and the sums by pairs.

    solved (draw, 2, manifold): the M^+ S1 t of b and of c.

    along (draw, manifold) = S1 t; used (draw, manifold): which rows count; draws (manifold): of how many draws its
    centre is the mean.
    """
    manifolds = center.shape[0]
    axis, both = np.empty((manifolds, manifolds)), np.empty((manifolds, manifolds))
    lower, inverse = np.empty((manifolds, manifolds)), np.empty((manifolds, manifolds))
    v, w, out, least = np.empty(manifolds), np.empty(manifolds), np.empty(manifolds), np.empty(manifolds)
    rows, roots = np.empty(manifolds, np.int64), np.empty(manifolds)
    for q in range(own.shape[0]):
        size = 0
        for m in range(manifolds):
            if used[q, m]:
                rows[size] = m
                size += 1
        for a in range(size):
            m = rows[a]
            v[a] = w[a] = along[q, m]
            least[a] = own[q, m, m] + center[m, m]
            for b in range(size):
                n = rows[b]
                axis[a, b] = own[q, m, n] - mixed[q, m, n] - mixed[q, n, m] + center[m, n]
                both[a, b] = axis[a, b] + center[m, n]
        _pairs(axis, mixed[q], center, rows, size, least, table[q], sums)
        _without(own[q], mixed[q], center, used[q], draws, table[q])
        for which in range(2):
            matrix, along_it = (axis, v) if which == 0 else (both, w)
            cut = max(CUT, 10.0 * _unit_diagonal(matrix, along_it, least, size, roots))
            for a in range(size):
                out[a] = 0.0
            table[q, which] = _quadratic(matrix, size, along_it, cut, lower, inverse, out)
            for a in range(size):
                parts[q, which, rows[a]] = along_it[a] * out[a]
                solved[q, which, rows[a]] = roots[a] * out[a]


@allocating
def _pairs(
    axis: Floats, mixed: Floats, center: Floats, rows: Integers, size: int, least: Floats, row: Floats, sums: Floats
) -> None:
    """Alignments of one draw: axes with axes (m, n), and centre m with axis n."""
    totals, counts = np.zeros(4), np.zeros(2)
    inverse, of_center = np.zeros(size), np.zeros(size)  # 1 / length; 0: it has none
    for a in range(size):
        m = rows[a]
        inverse[a] = 1.0 / math.sqrt(axis[a, a]) if axis[a, a] > ROUNDING * least[a] else 0.0
        of_center[a] = 1.0 / math.sqrt(center[m, m]) if center[m, m] > 0.0 else 0.0
    for a in range(size):
        for b in range(size):
            if a == b:
                continue
            m, n = rows[a], rows[b]
            cross = mixed[n, m] - center[m, n]
            totals[2] += abs(axis[a, b])
            totals[3] += abs(cross)
            sums[AXIS_INNERS, m, n] += abs(axis[a, b])
            sums[CENTER_AXIS_INNERS, m, n] += abs(cross)
            sums[PAIRS, m, n] += 1.0
            sums[PAIRS_AGAIN, m, n] += 1.0
            if inverse[b] > 0.0 and of_center[a] > 0.0:
                cosine = cross * of_center[a] * inverse[b]
                totals[1] += cosine
                counts[1] += 1.0
                sums[CENTER_AXIS_COSINES, m, n] += cosine
                sums[CENTER_AXIS_PAIRS, m, n] += 1.0
            if inverse[b] > 0.0 and inverse[a] > 0.0:
                cosine = axis[a, b] * inverse[a] * inverse[b]
                totals[0] += cosine
                counts[0] += 1.0
                sums[AXIS_COSINES, m, n] += cosine
                sums[AXIS_PAIRS, m, n] += 1.0
    row[AXIS_COSINE] = totals[0] / counts[0] if counts[0] > 0.0 else math.nan
    row[CENTER_AXIS_COSINE] = totals[1] / counts[1] if counts[1] > 0.0 else math.nan
    pairs = size * (size - 1)
    row[AXIS_INNER] = totals[2] / pairs if pairs > 0 else math.nan
    row[CENTER_AXIS_INNER] = totals[3] / pairs if pairs > 0 else math.nan


@allocating
def _without(own: Floats, mixed: Floats, center: Floats, used: Flags, draws: Integers, row: Floats) -> None:
    """Alignment of the centres if this draw had not been: S0 becomes f S0 - (f - 1) S with f = n / (n - 1)."""
    manifolds = center.shape[0]
    f, square = np.ones(manifolds), np.empty(manifolds)
    for m in range(manifolds):
        if used[m] and draws[m] > 1:
            f[m] = draws[m] / (draws[m] - 1.0)
        square[m] = (
            f[m] * f[m] * center[m, m]
            - 2.0 * f[m] * (f[m] - 1.0) * mixed[m, m]
            + (f[m] - 1.0) * (f[m] - 1.0) * own[m, m]
        )
        if square[m] <= ROUNDING * f[m] * f[m] * center[m, m]:
            square[m] = 0.0
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
            both = square[m] * square[n]
            if both > 0.0:  # a centre of zero has no direction
                cosine += product / math.sqrt(both)
                pairs += 1
    row[CENTER_COSINE] = cosine / pairs if pairs > 0 else math.nan
    row[CENTER_INNER] = inner_product / counted if counted > 0 else math.nan
