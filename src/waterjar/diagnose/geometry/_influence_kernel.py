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

All are mixtures of t, of points and of centres: their coefficients are what is summed here.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry._anchor_kernel import ROUNDING, Flags, Floats, Integers
from waterjar.diagnose.geometry._compiled import entry, fma, inner

B, C, COSINE, INNER, AXIS_COSINE, AXIS_INNER = range(6)
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
    on_center: Floats,
) -> None:
    """Coefficients of the gradients of one draw's mean cosines and inner products of centres and axes, axes and axes.

    axis, length: room for 1 / length of axes and centres, 0 where they have none. on_s[.., n, m]: that of S_n in row m.
    """
    pairs, of_axes = 0.0, 0.0
    for a in range(size):
        m = rows[a]
        square = own[m, m] - 2.0 * mixed[m, m] + center[m, m]
        axis[a] = 1.0 / math.sqrt(square) if square > ROUNDING * (own[m, m] + center[m, m]) else 0.0
        length[a] = 1.0 / math.sqrt(center[m, m]) if center[m, m] > 0.0 else 0.0
    for a in range(size):
        for b in range(size):
            if a != b and axis[b] > 0.0 and length[a] > 0.0:
                pairs += 1.0
            if a != b and axis[b] > 0.0 and axis[a] > 0.0:
                of_axes += 1.0
    share, each, twice = 1.0 / max(pairs, 1.0), 1.0 / max(size * (size - 1), 1), 2.0 / max(of_axes, 1.0)
    for a in range(size):
        for b in range(size):
            if a == b:
                continue
            m, n = rows[a], rows[b]
            cross = mixed[n, m] - center[m, n]
            sign = each if cross > 0.0 else -each
            on_s[INNER, n, m] += sign
            on_center[INNER, m, n] -= sign
            on_center[INNER, n, m] -= sign
            product = own[m, n] - mixed[m, n] - mixed[n, m] + center[m, n]
            sign = 2.0 * each if product > 0.0 else -2.0 * each
            on_s[AXIS_INNER, n, m] -= sign
            on_center[AXIS_INNER, m, n] += sign
            one = axis[a] * axis[b] * twice
            both = one * product * axis[a] * axis[a]
            on_s[AXIS_COSINE, n, m] -= one
            on_center[AXIS_COSINE, m, n] += one
            on_s[AXIS_COSINE, m, m] += both
            on_center[AXIS_COSINE, m, m] -= both
            one, both = length[a] * axis[b] * share, length[a] * axis[b] * cross * share
            if one > 0.0:
                on_s[COSINE, n, m] += one
                on_center[COSINE, m, n] -= one
                on_center[COSINE, n, m] -= one
                on_center[COSINE, m, m] -= both * length[a] * length[a]
                on_s[COSINE, n, n] += both * axis[b] * axis[b]
                on_center[COSINE, n, n] -= both * axis[b] * axis[b]


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
    """Add up the gradients' coefficients of unit vectors (point, measure, manifold) and of centres (measure, m, n).

    solved (draw, 2, manifold) = w and u; those of t are -2 w and -2 u.
    """
    manifolds = center.shape[0]
    rows = np.empty(manifolds, np.int64)
    on_s = np.empty((MEASURES, manifolds, manifolds))
    axis, length = np.empty(manifolds), np.empty(manifolds)
    for q in range(count.size):
        size = 0
        for m in range(manifolds):
            if used[q, m]:
                rows[size] = m
                size += 1
        for m in range(manifolds):
            for n in range(manifolds):
                w = 2.0 * solved[q, B, m] * solved[q, B, n]
                u = 2.0 * solved[q, C, m] * solved[q, C, n]
                on_s[B, n, m], on_s[C, n, m] = w, u
                for k in range(COSINE, MEASURES):
                    on_s[k, n, m] = 0.0
                on_center[B, m, n] -= w
                on_center[C, m, n] -= 2.0 * u
        _alignments(own[q], mixed[q], center, rows, size, axis, length, on_s, on_center)
        for a in range(count[q]):
            i, weight = members[q, a], weights[q, a]
            n = owner[i]
            for k in range(MEASURES):
                for m in range(manifolds):
                    on_points[i, k, m] = fma(weight, on_s[k, n, m], on_points[i, k, m])


@entry
def center_shift(
    count: Integers, members: Integers, weights: Floats, owner: Integers, along: Floats, of_center: Floats, out: Floats
) -> None:
    """Add to out (measure, draw): sum over manifolds of gradient . (S - S0) / draws.

    along (measure, point): the point's unit vector times its manifold's gradient / draws; of_center (measure, draw):
    the same of the centres of the manifolds that this draw uses.
    """
    for k in range(out.shape[0]):
        for q in range(count.size):
            total = -of_center[k, q]
            for a in range(count[q]):
                total = fma(weights[q, a], along[k, members[q, a]], total)
            out[k, q] += total
