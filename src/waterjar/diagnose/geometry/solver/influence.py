"""What one draw does to the measures of all: through the centres S0, which are means over the same draws.

The infinitesimal jackknife. Of a measure F = sum over draws of f(S, t; S0), draw r moves S0_m by (S_r - S0)_m / draws_m
and so moves F by that times dF/dS0_m, besides its own f. With S1 = S - S0, w = (S1 S1')^+ S1 t, u = (S0 S0' + S1 S1')^+
S1 t, the gradients are, rows m:

    b:  -2 w_m (t - S1' w),   c:  -2 u_m (t + S0' u - S1' u),
    cosine k of centre m and axis n, pairs (m, n):  (axis_n / |axis_n| - k S0_m / |S0_m|) / |S0_m| to row m,
                                                  - (S0_m / |S0_m| - k axis_n / |axis_n|) / |axis_n| to row n,
    |S0_m . axis_n| with the sign s:  s axis_n to row m, -s S0_m to row n;
    cosine k of axes m and n:  -(axis_n / |axis_n| - k axis_m / |axis_m|) / |axis_m| to row m, and n likewise;
    |axis_m . axis_n| with the sign s:  -s axis_n to row m, and n likewise.

All are mixtures of t, of points and of centres. What is summed here over draws are the coefficients of anchors, on_s
(n, m, measure): that of S_n in row m. They give those of points and, since S_n nearly always comes as S_n - S0_n, most
of those of centres.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver.anchors import ROUNDING
from waterjar.diagnose.geometry.solver.compiled import U, entry, fma, inner
from waterjar.diagnose.geometry.solver.layout import Flags, Floats, Integers

B, C, COSINE, INNER, AXIS_COSINE, AXIS_INNER = np.arange(6)
MEASURES = 6


@inner
def _alignments(
    own: Floats,
    mixed: Floats,
    center: Floats,
    rows: Integers,
    size: int,
    axis: Floats,
    length: Floats,
    on_s: Floats,
    itself: Floats,
) -> None:
    """Coefficients of the gradients of one draw's mean cosines and inner products of centres and axes, axes and axes.

    axis, length: room for 1 / length of axes and centres, 0 where they have none. itself (manifold): what S0_m has in
    row m besides, for the cosine of centre m.
    """
    with_axis, with_length, with_both = 0, 0, 0
    for a in range(U(size)):
        m = U(rows[a])
        square = own[m, m] - 2.0 * mixed[m, m] + center[m, m]
        axis[a] = 1.0 / math.sqrt(square) if square > ROUNDING * (own[m, m] + center[m, m]) else 0.0
        length[a] = 1.0 / math.sqrt(center[m, m]) if center[m, m] > 0.0 else 0.0
        with_axis += axis[a] > 0.0
        with_length += length[a] > 0.0
        with_both += axis[a] > 0.0 and length[a] > 0.0
        for k in range(COSINE, MEASURES):
            on_s[m, m, k] = 0.0
    share = 1.0 / max(with_axis * with_length - with_both, 1)
    twice, each = 2.0 / max(with_axis * (with_axis - 1), 1), 1.0 / max(size * (size - 1), 1)
    for a in range(U(size)):
        m = U(rows[a])
        for b in range(a):
            n = U(rows[b])
            product = own[m, n] - mixed[m, n] - mixed[n, m] + center[m, n]
            sign = 2.0 * each if product > 0.0 else -2.0 * each
            on_s[n, m, AXIS_INNER] = on_s[m, n, AXIS_INNER] = -sign
            one = axis[a] * axis[b] * twice
            on_s[n, m, AXIS_COSINE] = on_s[m, n, AXIS_COSINE] = -one
            on_s[m, m, AXIS_COSINE] += one * product * axis[a] * axis[a]
            on_s[n, n, AXIS_COSINE] += one * product * axis[b] * axis[b]
            cross = mixed[n, m] - center[m, n]
            on_s[n, m, INNER] = each if cross > 0.0 else -each
            one = length[a] * axis[b] * share
            on_s[n, m, COSINE] = one
            on_s[n, n, COSINE] += one * cross * axis[b] * axis[b]
            itself[m] -= one * cross * length[a] * length[a]
            cross = mixed[m, n] - center[m, n]
            on_s[m, n, INNER] = each if cross > 0.0 else -each
            one = length[b] * axis[a] * share
            on_s[m, n, COSINE] = one
            on_s[m, m, COSINE] += one * cross * axis[a] * axis[a]
            itself[n] -= one * cross * length[b] * length[b]


@inner
def _of_centers(total: Floats, itself: Floats, on_center: Floats) -> None:
    """The coefficients of centres from the sums of those of anchors."""
    for n in range(itself.size):
        for m in range(itself.size):
            for k in range(MEASURES):
                on_center[n, m, k] = -total[n, m, k]
            on_center[n, m, C] *= 2.0  # S0'u and -S1'u
            if n != m:  # centre n and axis m: S0_n has in row m what S_m has in row n
                on_center[n, m, COSINE] -= total[m, n, COSINE]
                on_center[n, m, INNER] -= total[m, n, INNER]
        on_center[n, n, COSINE] += itself[n]


@entry
def center_gradients(
    own: Floats,
    mixed: Floats,
    center: Floats,
    used: Flags,
    solved: Floats,
    count: Integers,
    members: Integers,
    weights: Floats,
    owner: Integers,
    on_points: Floats,
    on_center: Floats,
) -> None:
    """Add up the gradients' coefficients of unit vectors (point, m, measure) and of centres (n, m, measure): in row m.

    solved (draw, 2, manifold) = w and u; those of t are -2 w and -2 u.
    """
    manifolds = center.shape[0]
    rows = np.empty(manifolds, np.int64)
    on_s, total = np.zeros((manifolds, manifolds, MEASURES)), np.zeros((manifolds, manifolds, MEASURES))
    axis, length, itself = np.empty(manifolds), np.empty(manifolds), np.zeros(manifolds)
    flat, flat_total, width = on_s.reshape((manifolds, -1)), total.reshape((manifolds, -1)), manifolds * MEASURES
    on_each = on_points.reshape((owner.size, -1))
    for q in range(count.size):
        size = 0
        for m in range(manifolds):
            if used[q, m]:
                rows[size] = m
                size += 1
        for n in range(manifolds if size < manifolds else 0):  # what the other draws left
            for m in range(width):
                flat[n, m] = 0.0
        for n in range(U(manifolds)):
            w, u = 2.0 * solved[q, B, n], 2.0 * solved[q, C, n]
            for m in range(U(manifolds)):
                on_s[n, m, B], on_s[n, m, C] = w * solved[q, B, m], u * solved[q, C, m]
        _alignments(own[q], mixed[q], center, rows, size, axis, length, on_s, itself)
        for n in range(U(manifolds)):
            for m in range(U(width)):
                flat_total[n, m] += flat[n, m]
        for a in range(count[q]):
            i, weight = U(members[q, a]), weights[q, a]
            n = U(owner[i])
            for m in range(U(width)):
                on_each[i, m] = fma(weight, flat[n, m], on_each[i, m])
    _of_centers(total, itself, on_center)


@inner
def _along_points(gram: Floats, offsets: Integers, on_points: Floats, block: Floats, along: Floats) -> None:
    """Add to along (measure, point): products with the points in the gradient of the point's manifold.

    Blocks so small that a library of matrix products would take longer: four points and two measures at a time, summed
    in `block` (measure, point of a manifold).
    """
    points = gram.shape[0]
    whole = points - points % 4
    for m in range(offsets.size - 1):
        start, size = U(offsets[m]), U(offsets[m + 1] - offsets[m])
        for k in range(MEASURES):
            for i in range(size):
                block[k, i] = 0.0
        for j in range(0, whole, 4):
            for k in range(0, MEASURES, 2):
                a0, a1 = on_points[j, m, k], on_points[j + 1, m, k]
                a2, a3 = on_points[j + 2, m, k], on_points[j + 3, m, k]
                b0, b1 = on_points[j, m, k + 1], on_points[j + 1, m, k + 1]
                b2, b3 = on_points[j + 2, m, k + 1], on_points[j + 3, m, k + 1]
                for i in range(size):
                    g0, g1 = gram[j, start + i], gram[j + 1, start + i]
                    g2, g3 = gram[j + 2, start + i], gram[j + 3, start + i]
                    block[k, i] = fma(a3, g3, fma(a2, g2, fma(a1, g1, fma(a0, g0, block[k, i]))))
                    block[k + 1, i] = fma(b3, g3, fma(b2, g2, fma(b1, g1, fma(b0, g0, block[k + 1, i]))))
        for j in range(whole, points):
            for k in range(MEASURES):
                for i in range(size):
                    block[k, i] = fma(on_points[j, m, k], gram[j, start + i], block[k, i])
        for k in range(MEASURES):
            for i in range(size):
                along[k, start + i] += block[k, i]


@inner
def _along_others(
    offsets: Integers,
    draws: Integers,
    solved: Floats,
    products: Floats,
    to_center: Floats,
    on_center: Floats,
    along: Floats,
) -> None:
    """Add what t and the centres have in the gradients; divide by the draws."""
    manifolds = draws.size
    for q in range(solved.shape[0]):
        for m in range(manifolds):
            w, u = -2.0 * solved[q, B, m], -2.0 * solved[q, C, m]
            for i in range(U(offsets[m]), U(offsets[m + 1])):
                along[B, i] = fma(w, products[q, i], along[B, i])
                along[C, i] = fma(u, products[q, i], along[C, i])
    for m in range(manifolds):
        for k in range(MEASURES):
            for i in range(U(offsets[m]), U(offsets[m + 1])):
                part = along[k, i]
                for n in range(manifolds):
                    part = fma(to_center[i, n], on_center[n, m, k], part)
                along[k, i] = part / max(draws[m], 1)


@entry
def center_shift(
    count: Integers,
    members: Integers,
    weights: Floats,
    owner: Integers,
    offsets: Integers,
    used: Flags,
    draws: Integers,
    solved: Floats,
    products: Floats,
    to_center: Floats,
    gram: Floats,
    on_points: Floats,
    on_center: Floats,
    along: Floats,
    out: Floats,
) -> None:
    """Write out (measure, draw): sum over manifolds of gradient . (S - S0) / draws.

    along (measure, point): the product of the point's unit vector and its manifold's gradient, to which is added here
    what t and the centres have in it, and the points if there is a Gram matrix. products (draw, point) = u . t;
    to_center (point, manifold) = u . S0.
    """
    manifolds = draws.size
    if gram.size > 0:
        _along_points(gram, offsets, on_points, np.empty((MEASURES, owner.size)), along)
    _along_others(offsets, draws, solved, products, to_center, on_center, along)
    mean = np.zeros((MEASURES, manifolds))  # over draws, which is what S0 has
    for q in range(count.size):
        for k in range(MEASURES):
            out[k, q] = 0.0
        for a in range(count[q]):
            i, w = U(members[q, a]), weights[q, a]
            m = U(owner[i])
            for k in range(MEASURES):
                part = w * along[k, i]
                out[k, q] += part
                mean[k, m] += part
    for k in range(MEASURES):
        for m in range(manifolds):
            mean[k, m] /= max(draws[m], 1)
        for q in range(count.size):
            for m in range(manifolds):
                if used[q, m]:
                    out[k, q] -= mean[k, m]
