"""The projection on a cone, compiled.

    minimise || t - sum_i lam_i y_i u_i ||^2   over lam >= 0,   |u_i| = 1

It is solved for beta_i = y_i lam_i: the signs y then touch neither the Gram matrix nor its factor, so that all t and y
of a snapshot share them. With r = t - sum beta_i u_i and g_i = u_i . r, the conditions of Karush, Kuhn and Tucker are
y_i g_i <= 0, and g_i = 0 on the support; all of it scales with |t|.

The active set is Lawson and Hanson's (1974, chapter 23), but a round adds the two worst violators of EVERY manifold,
those that are near the maximum. The objective falls in each round all the same: see `step_to_boundary`.
"""

from __future__ import annotations

import math

from waterjar.diagnose.geometry.solver.compiled import U, entry, fma, inlined, inner
from waterjar.diagnose.geometry.solver.factor import append, correct, correct_exact, drop_negative, step_to_boundary
from waterjar.diagnose.geometry.solver.lanes import WIDTH, lane, load, product, store, zero
from waterjar.diagnose.geometry.solver.layout import (
    BETA,
    EXACT,
    GRAM,
    MEMBERS,
    QUEUE,
    SIGN,
    Coarse,
    Flags,
    Floats,
    Integers,
)
from waterjar.diagnose.geometry.solver.problem import Problem, Work, workspace
from waterjar.diagnose.geometry.solver.violations import MINUS, bits, largest, price, prices, take

TOLERANCE = 1e-12  # a violation below this share of |t| is rounding
TOLERANCE_COARSE = 1e-5  # ... where products have seven digits
NEAR, NEAR_HULL = 0.25, 0.75  # violators within this share of the largest are added in the same round
NO_MARGIN = 1e-8  # points that a hyperplane separates by less than this (as unit vectors) are not separated
HALF_ULP, HALF_ULP_COARSE = 1.1e-16, 6e-8
PATIENCE = 30  # rounds in single precision before its rounding is thought of
OPTIMAL, SEPARABLE, STOPPED = 0, 1, 2


@inlined
def begin(of: Problem, start: int, work: Work) -> int:
    """Make the first `start` points of QUEUE members and solve, without those that turn negative; how many stay."""
    if of.mode == EXACT:
        for d in range(of.t.size):
            work.basis[work.basis.shape[0] - 2, d] = of.t[d]
    if start == 0:
        return 0
    k, _ = append(of.mode, of.table, of.h, of.y, of.owner, start, 0, work.factor, work.v, work.ids, work.basis)
    return drop_negative(of.mode, k, work.factor, work.v, work.ids, work.basis)


@inlined
def active_set(  # noqa: PLR0912 - calls would cost more than branches
    of: Problem, hull: bool, coarse: bool, k: int, work: Work
) -> tuple[int, int]:
    """Project t, beginning with k members and their BETA: number of members, and how it ended.

    coarse=True looks for violators in the coarse table, until there are none that it can show; all else is exact.
    hull=True asks only whether the points without their last coordinate are on one side of a hyperplane through the
    origin, t being the last unit vector (see `separation`); it ends as soon as that is certain.
    """
    mode, table, h, y, owner = of.mode, of.table, of.h, of.y, of.owner
    factor, v, ids, basis, r = work.factor, work.v, work.ids, work.basis, work.r
    refused, least = 0, 0.0 if hull else (TOLERANCE_COARSE if coarse else TOLERANCE) * of.scale
    near = NEAR_HULL if hull else NEAR
    for turn in range(3 * h.size + 100):
        if not hull and (turn > PATIENCE or not coarse):
            # Rounding of coefficients moves g by this; a smaller violation is none, and would come and go for ever.
            size = 0.0
            for a in range(k):
                size += v[BETA, a] * v[BETA, a]
            least = max(least, (HALF_ULP_COARSE if coarse else HALF_ULP) * math.sqrt(size))
        highest, top, blocked = prices(of, coarse, k, refused, work)
        if hull:
            rest = 0.0
            for d in range(r.size):
                rest += r[d] * r[d]
            if rest <= NO_MARGIN * NO_MARGIN:
                return k, OPTIMAL
            if math.sqrt(2.0) * max(top, blocked) < r[r.size - 1]:
                return k, SEPARABLE
        if top <= least:
            return k, OPTIMAL if blocked <= least else STOPPED
        before, last = k, ids[MEMBERS, k - 1] if k > 0 else -1
        count, point = 0, -1
        enough = max(bits(max(near * top, least), coarse, work), 1)  # 0 has no violation, though the limit may be 0
        for _ in range(1 if hull else 2):  # first those of different manifolds: there may be room for no more
            for m in range(y.size):
                if work.violation[m] >= enough:
                    leads = point < 0 and work.violation[m] == highest
                    ids[QUEUE, count] = take(of, coarse, m, not hull, work)
                    point = ids[QUEUE, count] if leads else point
                    count += 1
        k, left = append(mode, table, h, y, owner, count, k, factor, v, ids, basis)
        for a in range(left):
            work.refused[refused] = ids[QUEUE, a]
            refused += 1
        if k == before:
            continue
        for a in range(left):
            point = ids[MEMBERS, before] if ids[QUEUE, a] == point else point  # which depends on the members
        grown, k = k, step_to_boundary(mode, k, point, factor, v, ids, basis)
        if k == before and (k == 0 or ids[MEMBERS, k - 1] == last):
            work.refused[refused] = point  # rounding: in exact arithmetic one of the new members stays
            refused += 1
        elif k < grown:
            refused = 0  # with other members, they may be independent
    return k, STOPPED


@inlined
def finish(of: Problem, k: int, work: Work) -> tuple[int, float]:
    """Solve the support again in the order of its points: the bits then depend on the support, not on the way to it.

    Returns the number of members and the largest violation of the conditions at the final BETA, as a share of |t|, with
    what rounding may have hidden of it where coefficients are large and cancel; EXACT hides nothing.
    """
    v, ids, g = work.v, work.ids, work.g
    while True:
        for a in range(k):  # in order: supports are short, and mostly sorted runs
            i, b = ids[MEMBERS, a], a
            while b > 0 and ids[QUEUE, b - 1] > i:
                ids[QUEUE, b] = ids[QUEUE, b - 1]
                b -= 1
            ids[QUEUE, b] = i
        before = k
        k, left = append(of.mode, of.table, of.h, of.y, of.owner, k, 0, work.factor, v, ids, work.basis)
        if left > 0:
            return 0, math.inf
        k = drop_negative(of.mode, k, work.factor, v, ids, work.basis)
        if k == before:
            break
    worst = 0.0
    for attempt in range(4):
        price(of.mode, of.table, of.columns, of.h, of.t, k, v, ids, g, work.r, work.basis)
        worst = 0.0
        for a in range(k):
            worst = max(worst, abs(g[ids[MEMBERS, a]]))
        if worst <= 0.1 * TOLERANCE * of.scale or attempt == 3:
            break
        if of.mode == EXACT:
            correct_exact(k, work.factor, v, work.basis, work.r)
        else:
            correct(k, work.factor, v, ids, g)
    size = 0.0
    for a in range(k):
        size += v[BETA, a] * v[BETA, a]
        if v[SIGN, a] * v[BETA, a] < 0.0:
            return 0, math.inf
    work.number_bits[0] = largest(of.y, of.offsets, work.bits, work.violation)
    worst = max(worst, work.number[0])
    hidden = HALF_ULP * math.sqrt(size) if of.mode != EXACT else 0.0
    return k, (worst + hidden) / of.scale if of.scale > 0.0 else 0.0


@inlined
def _margin(k: int, norms: Floats, work: Work) -> float:
    """The smallest |beta| of members and |g| of all others but zero points. Uses up g."""
    least = math.inf
    for a in range(k):
        least = min(least, abs(work.v[BETA, a]))
        work.g[work.ids[MEMBERS, a]] = math.inf
    work.number[0] = least
    lowest = work.number_bits[0]
    for i in range(norms.size):  # the order of positive numbers is that of their bits: see `violations`
        lowest = min(lowest, work.bits[i] & ~MINUS if norms[i] > 0.0 else lowest)
    work.number_bits[0] = lowest
    return float(work.number[0])


@inlined
def _anchors(
    k: int, owner: Integers, norms: Floats, work: Work, weights: Floats, active: Flags, own: Floats, q: int
) -> None:
    """Of the draw q: weights (slot) of unit vectors in the anchors S: |beta| / (the manifold's sum of |beta| / |x|).

    `active` (manifold): whether it has any. own (manifold, manifold) = S S': the members' Gram matrix is R'R, so that
    it is (RW)' RW, with the weights as a matrix W (member, manifold). Members are sorted.
    """
    v, ids, mixture, end, manifolds = work.v, work.ids, work.mixture, work.violation, U(own.shape[1])
    for m in range(manifolds):
        own[q, m, m], end[m] = 0.0, 0
    for a in range(U(k)):
        i = U(ids[MEMBERS, a])
        m = U(owner[i])
        own[q, m, m] += abs(v[BETA, a]) / norms[i]
        end[m] = a + U(1)
    for m in range(manifolds):
        active[q, m] = end[m] > 0
        for a in range(U(end[m])):
            mixture[m, a] = 0.0
        store(mixture, m, U(end[m]), zero())  # up to a multiple of four
    for b in range(U(k)):
        m = U(owner[U(ids[MEMBERS, b])])
        w = abs(v[BETA, b]) / own[q, m, m]
        weights[q, b] = w
        for a in range(b + U(1)):
            mixture[m, a] = fma(w, work.factor[b, a], mixture[m, a])
    for m in range(manifolds):
        for n in range(m + U(1)):
            x = zero()
            for a in range(U(0), U(min(end[m], end[n])), U(WIDTH)):
                x = product(load(mixture, m, a), load(mixture, n, a), x)
            inner_product = (lane(x, 0) + lane(x, 1)) + (lane(x, 2) + lane(x, 3))
            own[q, m, n], own[q, n, m] = inner_product, inner_product


@inner
def _project_each(
    mode: int,
    table: Floats,
    columns: Floats,
    coarse: Coarse,
    products: Floats,
    t: Floats,
    scale: Floats,
    y: Floats,
    owner: Integers,
    offsets: Integers,
    norms: Floats,
    start_count: Integers,
    start: Integers,
    count: Integers,
    members: Integers,
    beta: Floats,
    square: Floats,
    size: Floats,
    residual: Floats,
    margin: Floats,
    nearest: Integers,
    weights: Floats,
    active: Flags,
    own: Floats,
    work: Work,
) -> None:
    """All of it but for making room."""
    for q in range(products.shape[0]):
        of = Problem(mode, table, columns, coarse, products[q], t[q], scale[q], y[q], owner, offsets)
        for a in range(start_count[q]):
            work.ids[QUEUE, a] = start[q, a]
        k, rough = begin(of, start_count[q], work), mode == GRAM
        for i in range(products.shape[1]):
            work.h_coarse[i] = products[q, i]
        while True:
            k, _ = active_set(of, False, rough, k, work)
            k, residual[q] = finish(of, k, work)
            if not rough or residual[q] <= TOLERANCE:
                break
            rough = False
        count[q], square[q], size[q] = k, 0.0, 0.0
        for a in range(k):
            i, b = work.ids[MEMBERS, a], work.v[BETA, a]
            members[q, a], beta[q, a] = i, b
            square[q] += b * products[q, i]
            size[q] += abs(b)
        for m in range(nearest.shape[1]):
            most = -math.inf
            for i in range(offsets[m], offsets[m + 1]):
                w = y[q, m] * norms[i] * work.g[i]
                if w > most:
                    most, nearest[q, m] = w, i
        if own.shape[1] > 0:
            _anchors(k, owner, norms, work, weights, active, own, q)
        if margin.size > 0:
            margin[q] = _margin(k, norms, work)


@entry
def project_many(
    mode: int,
    table: Floats,
    columns: Floats,
    coarse: Coarse,
    products: Floats,
    t: Floats,
    scale: Floats,
    y: Floats,
    owner: Integers,
    offsets: Integers,
    norms: Floats,
    start_count: Integers,
    start: Integers,
    count: Integers,
    members: Integers,
    beta: Floats,
    square: Floats,
    size: Floats,
    residual: Floats,
    margin: Floats,
    nearest: Integers,
    weights: Floats,
    active: Flags,
    own: Floats,
) -> None:
    """Project t (draw, dimension) with the dichotomies y (draw, manifold), one after the other.

    products (draw, point) = u . t; norms (point). Written, per draw: the support (`count`, `members`, `beta`), |p|^2,
    sum |beta|, the KKT residual; and if there is room for it the smallest |beta| or |g| outside of the support
    (`margin`), in `nearest` (draw, manifold) the point with the largest y x . r, and the anchors: see `_anchors`.
    """
    work = workspace(mode, products.shape[1], t.shape[1], y.shape[1], members.shape[1])
    _project_each(
        mode, table, columns, coarse, products, t, scale, y, owner, offsets, norms, start_count, start, count, members,
        beta, square, size, residual, margin, nearest, weights, active, own, work,
    )  # fmt: skip
