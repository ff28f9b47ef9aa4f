"""The Cholesky factor of a growing and shrinking set of points: what the active set of `_cone_kernel` works with.

Three ways to see the same unit vectors u_i. GRAM reads products from the Gram matrix, and the dimension disappears.
ROWS takes products of the u_i when needed: for a single problem, or for too many points. EXACT orthogonalises the
members instead of factoring their Gram matrix, which squares the condition: for what the others cannot resolve.

Few and plain arrays, indexed and never sliced: the smallest problems take two microseconds, and a slice or a tuple of
arrays handed from function to function costs a tenth of that. The factor R stands above the diagonal and its transpose
below, so that both substitutions run along rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry._compiled import U, fma, fma32, inlined, inner
from waterjar.diagnose.geometry._four import WIDTH, Four, add, lane, load, pack, scale, store, zero

GRAM, ROWS, EXACT = 0, 1, 2
DEPENDENT = 1e-13  # squared distance of u_i from the span of the members below which it is not added
DEPENDENT_EXACT = 1e-20  # the same, where distances are not differences of squares

# Rows of `v` (.., member).
C = 0  # R'^-1 h, where R'R = factor'factor is the members' Gram matrix and h_i = u_i . t
COLUMN = 1  # of a member to be
SIGN = 2  # y
BETA = 3  # feasible coefficients
Z = 4  # coefficients without the constraint
INVERSE = 5  # 1 / diagonal of the factor: divisions take most of the time in small problems
VECTORS = 6
# Rows of `ids` (.., member or point to be one).
MEMBERS, QUEUE = 0, 1

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Coarse = NDArray[np.float32]
Flags = NDArray[np.bool_]


@inner
def dot(basis: Floats, a: int, b: int) -> float:
    """Product of two rows, in eight sums that do not wait for each other."""
    dimension = basis.shape[1]
    whole = dimension - dimension % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for d in range(0, whole, 8):
        s0 = fma(basis[a, d], basis[b, d], s0)
        s1 = fma(basis[a, d + 1], basis[b, d + 1], s1)
        s2 = fma(basis[a, d + 2], basis[b, d + 2], s2)
        s3 = fma(basis[a, d + 3], basis[b, d + 3], s3)
        s4 = fma(basis[a, d + 4], basis[b, d + 4], s4)
        s5 = fma(basis[a, d + 5], basis[b, d + 5], s5)
        s6 = fma(basis[a, d + 6], basis[b, d + 6], s6)
        s7 = fma(basis[a, d + 7], basis[b, d + 7], s7)
    for d in range(whole, dimension):
        s0 = fma(basis[a, d], basis[b, d], s0)
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inner
def _orthogonalise(table: Floats, i: int, k: int, v: Floats, basis: Floats) -> float:
    """EXACT: parts of u_i along the first k of the basis into COLUMN, what is left into its last row; its square."""
    dimension, last = basis.shape[1], basis.shape[0] - 1
    for d in range(dimension):
        basis[last, d] = table[i, d]
    for a in range(k):
        v[COLUMN, a] = 0.0
    for _ in range(2):  # the second time removes what rounding left
        for a in range(k):
            part = dot(basis, a, last)
            v[COLUMN, a] += part
            for d in range(dimension):
                basis[last, d] = fma(-part, basis[a, d], basis[last, d])
    return dot(basis, last, last)


@inlined
def _substitute(k: int, factor: Floats, v: Floats) -> float:
    """COLUMN = R'^-1 COLUMN, four rows at a time; 1 less its square."""
    rest, whole = 1.0, k - k % 4
    for a in range(0, whole, 4):
        p0 = v[COLUMN, a] * v[INVERSE, a]
        p1 = fma(-p0, factor[a, a + 1], v[COLUMN, a + 1]) * v[INVERSE, a + 1]
        p2 = fma(-p1, factor[a + 1, a + 2], fma(-p0, factor[a, a + 2], v[COLUMN, a + 2])) * v[INVERSE, a + 2]
        p3 = fma(-p1, factor[a + 1, a + 3], fma(-p0, factor[a, a + 3], v[COLUMN, a + 3]))
        p3 = fma(-p2, factor[a + 2, a + 3], p3) * v[INVERSE, a + 3]
        v[COLUMN, a], v[COLUMN, a + 1], v[COLUMN, a + 2], v[COLUMN, a + 3] = p0, p1, p2, p3
        rest -= p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3
        for b in range(U(a + 4), U(k)):
            value = fma(-p0, factor[a, b], v[COLUMN, b])
            value = fma(-p1, factor[a + 1, b], value)
            value = fma(-p2, factor[a + 2, b], value)
            v[COLUMN, b] = fma(-p3, factor[a + 3, b], value)
    for a in range(whole, k):
        part = v[COLUMN, a] * v[INVERSE, a]
        v[COLUMN, a] = part
        rest -= part * part
        for b in range(a + 1, k):
            v[COLUMN, b] = fma(-part, factor[a, b], v[COLUMN, b])
    return rest


@inlined
def _products(table: Floats, i: int, k: int, v: Floats, basis: Floats) -> None:
    """ROWS: COLUMN = u_i . members, which the basis holds as (dimension, member)."""
    dimension = table.shape[1]
    whole = dimension - dimension % 4
    for a in range(k):
        v[COLUMN, a] = 0.0
    for d in range(0, whole, 4):
        x0, x1, x2, x3 = table[i, d], table[i, d + 1], table[i, d + 2], table[i, d + 3]
        for a in range(k):
            value = fma(x0, basis[d, a], v[COLUMN, a])
            value = fma(x1, basis[d + 1, a], value)
            value = fma(x2, basis[d + 2, a], value)
            v[COLUMN, a] = fma(x3, basis[d + 3, a], value)
    for d in range(whole, dimension):
        for a in range(k):
            v[COLUMN, a] = fma(table[i, d], basis[d, a], v[COLUMN, a])


@inlined
def _divide_panel(k: int, factor: Floats, v: Floats, panel: Floats) -> tuple[Four, Four, Four, Four, Four]:
    """X = R'^-1 X for the rows 0 ... k of the panel, which has a column for each of four points.

    Returns the rows of X'X, and X'C.
    """
    s0 = s1 = s2 = s3 = along = zero()
    whole, first = k - k % 4, U(0)
    for a in range(first, U(whole), U(4)):
        b, c, d = a + U(1), a + U(2), a + U(3)
        p0 = scale(v[INVERSE, a], load(panel, a, first))
        p1 = scale(v[INVERSE, b], add(-factor[b, a], p0, load(panel, b, first)))
        p2 = scale(v[INVERSE, c], add(-factor[c, b], p1, add(-factor[c, a], p0, load(panel, c, first))))
        p3 = add(-factor[d, b], p1, add(-factor[d, a], p0, load(panel, d, first)))
        p3 = scale(v[INVERSE, d], add(-factor[d, c], p2, p3))
        for row in range(a + U(4), U(k)):
            x = add(-factor[row, a], p0, load(panel, row, first))
            x = add(-factor[row, b], p1, x)
            x = add(-factor[row, c], p2, x)
            store(panel, row, first, add(-factor[row, d], p3, x))
        store(panel, a, first, p0)
        store(panel, b, first, p1)
        store(panel, c, first, p2)
        store(panel, d, first, p3)
        s0 = add(lane(p3, 0), p3, add(lane(p2, 0), p2, add(lane(p1, 0), p1, add(lane(p0, 0), p0, s0))))
        s1 = add(lane(p3, 1), p3, add(lane(p2, 1), p2, add(lane(p1, 1), p1, add(lane(p0, 1), p0, s1))))
        s2 = add(lane(p3, 2), p3, add(lane(p2, 2), p2, add(lane(p1, 2), p1, add(lane(p0, 2), p0, s2))))
        s3 = add(lane(p3, 3), p3, add(lane(p2, 3), p2, add(lane(p1, 3), p1, add(lane(p0, 3), p0, s3))))
        along = add(v[C, d], p3, add(v[C, c], p2, add(v[C, b], p1, add(v[C, a], p0, along))))
    for a in range(U(whole), U(k)):
        p0 = scale(v[INVERSE, a], load(panel, a, first))
        for row in range(a + U(1), U(k)):
            store(panel, row, first, add(-factor[row, a], p0, load(panel, row, first)))
        store(panel, a, first, p0)
        s0, s1 = add(lane(p0, 0), p0, s0), add(lane(p0, 1), p0, s1)
        s2, s3 = add(lane(p0, 2), p0, s2), add(lane(p0, 3), p0, s3)
        along = add(v[C, a], p0, along)
    return s0, s1, s2, s3, along


@inner
def _append_panels(
    table: Floats,
    h: Floats,
    y: Floats,
    owner: Integers,
    count: int,
    k: int,
    factor: Floats,
    v: Floats,
    ids: Integers,
    panel: Floats,
) -> tuple[int, int]:
    """`append` with a Gram matrix: four points at a time, whose columns do not wait for each other."""
    left, first = 0, U(0)
    for start in range(0, count, WIDTH):
        width, before = min(WIDTH, count - start), k
        i0, i1 = U(ids[QUEUE, start]), U(ids[QUEUE, start + min(1, width - 1)])  # the last one, where there are less
        i2, i3 = U(ids[QUEUE, start + min(2, width - 1)]), U(ids[QUEUE, start + width - 1])
        for a in range(U(k)):
            m = U(ids[MEMBERS, a])
            store(panel, a, first, pack(table[i0, m], table[i1, m], table[i2, m], table[i3, m]))
        g0, g1 = (
            pack(table[i0, i0], table[i0, i1], table[i0, i2], table[i0, i3]),
            pack(table[i1, i0], table[i1, i1], table[i1, i2], table[i1, i3]),
        )
        g2 = pack(table[i2, i0], table[i2, i1], table[i2, i2], table[i2, i3])
        s0, s1, s2, s3, along = _divide_panel(k, factor, v, panel)
        r0, r1, r2, r3 = U(k), U(k + 1), U(k + 2), U(k + 3)
        for a in range(U(k)):  # as if all of them became members
            x = load(panel, a, first)
            store(factor, a, r0, x)
            factor[r0, a], factor[r1, a], factor[r2, a], factor[r3, a] = lane(x, 0), lane(x, 1), lane(x, 2), lane(x, 3)
        for j in range(width):
            i, rest = ids[QUEUE, start + j], 1.0 - lane(s0, j)
            if k == v.shape[1] or rest <= DEPENDENT:
                ids[QUEUE, left] = i
                left += 1
            else:
                length = math.sqrt(rest)
                inverse = 1.0 / length
                for a in range(before if k == before + j else 0, k):
                    factor[a, k] = panel[a, j]
                    factor[k, a] = panel[a, j]
                factor[k, k], v[INVERSE, k] = length, inverse
                v[C, k] = (h[i] - lane(along, j)) * inverse
                v[SIGN, k], v[BETA, k] = y[owner[i]], 0.0
                ids[MEMBERS, k] = i
                x = scale(inverse, add(-1.0, s0, g0))
                store(panel, U(k), first, x)
                along = add(v[C, k], x, along)
                s1, s2 = add(lane(x, (j + 1) % 4), x, s1), add(lane(x, (j + 2) % 4), x, s2)
                s3 = add(lane(x, (j + 3) % 4), x, s3)
                k += 1
            s0, s1, s2, g0, g1 = s1, s2, s3, g1, g2
    return k, left


@inner
def append(
    mode: int,
    table: Floats,
    h: Floats,
    y: Floats,
    owner: Integers,
    count: int,
    k: int,
    factor: Floats,
    v: Floats,
    ids: Integers,
    basis: Floats,
) -> tuple[int, int]:
    """Make the first `count` points of QUEUE members after k others, each if it is independent of those before it.

    table: the Gram matrix (point, point), or the points (point, dimension); h (point) = u . t. Returns the new number
    of members, and how many are left in QUEUE because they depend on others.
    """
    if mode == GRAM and count > 2:
        return _append_panels(table, h, y, owner, count, k, factor, v, ids, basis)
    left = 0
    for place in range(count):
        i = ids[QUEUE, place]
        rest, least = 0.0, DEPENDENT
        if k < v.shape[1]:
            if mode == EXACT:
                rest, least = _orthogonalise(table, i, k, v, basis), DEPENDENT_EXACT
            else:
                if mode == GRAM:
                    for a in range(k):
                        v[COLUMN, a] = table[i, U(ids[MEMBERS, a])]
                else:
                    _products(table, i, k, v, basis)
                rest = _substitute(k, factor, v)
        if rest <= least:
            ids[QUEUE, left] = i
            left += 1
            continue
        length = math.sqrt(rest)
        if mode == EXACT:
            for d in range(basis.shape[1]):
                basis[k, d] = basis[basis.shape[0] - 1, d] / length
        elif mode == ROWS:
            for d in range(table.shape[1]):
                basis[d, k] = table[i, d]
        along = 0.0
        for a in range(k):
            factor[a, k] = v[COLUMN, a]
            factor[k, a] = v[COLUMN, a]
            along += v[COLUMN, a] * v[C, a]
        factor[k, k], v[INVERSE, k] = length, 1.0 / length
        # The first is a difference of near numbers where the points are near: EXACT has t in the row before the last.
        v[C, k] = (h[i] - along) * v[INVERSE, k] if mode != EXACT else dot(basis, k, basis.shape[0] - 2)
        v[SIGN, k], v[BETA, k] = y[owner[i]], 0.0
        ids[MEMBERS, k] = i
        k += 1
    return k, left


@inner
def delete(  # noqa: PLR0912 - one loop after the other
    mode: int, k: int, q: int, factor: Floats, v: Floats, ids: Integers, basis: Floats
) -> None:
    """Take member q of k out: its row of the factor is rotated into those below it."""
    one, gone, members = U(1), U(q), U(k)
    for a in range(gone):
        for b in range(gone, members - one):
            factor[a, b] = factor[a, b + one]
    for b in range(gone + one, members):
        v[COLUMN, b] = factor[gone, b]
    rest, last = v[C, gone], basis.shape[0] - 1
    if mode == EXACT:
        for d in range(basis.shape[1]):
            basis[last, d] = basis[q, d]
    for a in range(gone + one, members):
        x, z = factor[a, a], v[COLUMN, a]
        length = math.sqrt(x * x + z * z)
        inverse = 1.0 / length
        cos, sin = x * inverse, z * inverse
        for b in range(gone):
            factor[a - one, b] = factor[a, b]
        factor[a - one, a - one], v[INVERSE, a - one] = length, inverse
        for b in range(a + one, members):
            u, w = factor[a, b], v[COLUMN, b]
            factor[a - one, b - one] = fma(cos, u, sin * w)
            v[COLUMN, b] = fma(cos, w, -(sin * u))
        u = v[C, a]
        v[C, a - one] = cos * u + sin * rest
        rest = cos * rest - sin * u
        if mode == EXACT:
            for d in range(basis.shape[1]):
                u, w = basis[a, d], basis[last, d]
                basis[a - one, d] = cos * u + sin * w
                basis[last, d] = cos * w - sin * u
    for a in range(gone, members - one):
        for b in range(a + one, members - one):
            factor[b, a] = factor[a, b]
        ids[MEMBERS, a] = ids[MEMBERS, a + one]
        v[SIGN, a], v[BETA, a], v[Z, a] = v[SIGN, a + one], v[BETA, a + one], v[Z, a + one]
    if mode == ROWS:
        for d in range(basis.shape[0]):
            for a in range(gone, members - one):
                basis[d, a] = basis[d, a + one]


@inlined
def solve(k: int, factor: Floats, v: Floats) -> None:
    """Z = R^-1 C, four rows at a time: the members' coefficients without the constraint."""
    for a in range(k):
        v[Z, a] = v[C, a]
    top = k
    while top >= 4:
        a = top - 4
        z3 = v[Z, a + 3] * v[INVERSE, a + 3]
        z2 = fma(-z3, factor[a + 2, a + 3], v[Z, a + 2]) * v[INVERSE, a + 2]
        z1 = fma(-z2, factor[a + 1, a + 2], fma(-z3, factor[a + 1, a + 3], v[Z, a + 1])) * v[INVERSE, a + 1]
        z0 = fma(-z2, factor[a, a + 2], fma(-z3, factor[a, a + 3], v[Z, a]))
        z0 = fma(-z1, factor[a, a + 1], z0) * v[INVERSE, a]
        v[Z, a], v[Z, a + 1], v[Z, a + 2], v[Z, a + 3] = z0, z1, z2, z3
        for b in range(a):
            value = fma(-z0, factor[a, b], v[Z, b])
            value = fma(-z1, factor[a + 1, b], value)
            value = fma(-z2, factor[a + 2, b], value)
            v[Z, b] = fma(-z3, factor[a + 3, b], value)
        top = a
    for a in range(top - 1, -1, -1):
        z0 = v[Z, a] * v[INVERSE, a]
        v[Z, a] = z0
        for b in range(a):
            v[Z, b] = fma(-z0, factor[a, b], v[Z, b])


@inner
def drop_negative(mode: int, k: int, factor: Floats, v: Floats, ids: Integers, basis: Floats) -> int:
    """Solve, and drop every member of the wrong sign, until there is none; how many are left. BETA is then Z."""
    while True:
        solve(k, factor, v)
        before = k
        for a in range(k - 1, -1, -1):
            if v[SIGN, a] * v[Z, a] <= 0.0:
                delete(mode, k, a, factor, v, ids, basis)
                k -= 1
        if k == before:
            break
    for a in range(k):
        v[BETA, a] = v[Z, a]
    return k


@inlined
def step_to_boundary(mode: int, k: int, point: int, factor: Floats, v: Floats, ids: Integers, basis: Floats) -> int:
    """Go from BETA towards Z; drop what reaches zero first, and again; how many are left. BETA is then Z.

    Of new members (BETA is 0), those of the wrong sign go at once, but for `point`: alone it would have the right one.
    """
    while True:
        solve(k, factor, v)
        share, first = 1.0, -1
        for a in range(k):
            if v[SIGN, a] * v[Z, a] <= 0.0:
                ratio = v[BETA, a] / (v[BETA, a] - v[Z, a]) if v[BETA, a] != 0.0 else 0.0
                if first < 0 or ratio < share:
                    share, first = ratio, a
        before = k
        if share == 0.0:
            for a in range(k - 1, -1, -1):
                if v[BETA, a] == 0.0 and v[SIGN, a] * v[Z, a] <= 0.0 and ids[MEMBERS, a] != point:
                    delete(mode, k, a, factor, v, ids, basis)
                    k -= 1
        else:
            for a in range(k):
                v[BETA, a] += share * (v[Z, a] - v[BETA, a])
        if first < 0:
            return k
        if k == before:
            delete(mode, k, first, factor, v, ids, basis)
            k -= 1


@inlined
def correct(k: int, factor: Floats, v: Floats, ids: Integers, g: Floats) -> None:
    """One step of iterative refinement: BETA += (R'R)^-1 g of the members. Uses up C and Z."""
    for a in range(k):
        v[COLUMN, a] = g[ids[MEMBERS, a]]
    _substitute(k, factor, v)
    for a in range(k):
        v[C, a] = v[COLUMN, a]
    solve(k, factor, v)
    for a in range(k):
        v[BETA, a] += v[Z, a]


@inner
def correct_exact(k: int, factor: Floats, v: Floats, basis: Floats, r: Floats) -> None:
    """The same for EXACT, without squaring the condition: BETA += R^-1 Q' r, the rows of Q being the basis."""
    last = basis.shape[0] - 1
    for d in range(r.size):
        basis[last, d] = r[d]
    for a in range(k):
        v[C, a] = dot(basis, a, last)
    solve(k, factor, v)
    for a in range(k):
        v[BETA, a] += v[Z, a]


@inner
def subtract_exact(start: Floats, table: Floats, k: int, v: Floats, ids: Integers, out: Floats, basis: Floats) -> None:
    """As `subtract`, with every rounding error kept in the last row of the basis and added in the end.

    Products by fma, sums by Knuth's two-sum: large coefficients that cancel then leave what they should.
    """
    n, low = out.size, basis.shape[0] - 1
    for d in range(n):
        out[d], basis[low, d] = start[d], 0.0
    for a in range(k):
        m, b = ids[MEMBERS, a], -v[BETA, a]
        for d in range(n):
            product = b * table[m, d]
            error = fma(b, table[m, d], -product)
            total = out[d] + product
            back = total - out[d]
            error += (out[d] - (total - back)) + (product - back)
            out[d] = total
            basis[low, d] += error
    for d in range(n):
        out[d] += basis[low, d]


@inlined
def subtract(start: Floats, table: Floats, k: int, v: Floats, ids: Integers, out: Floats) -> None:
    """Out = start less the sum of BETA times the members' rows of the table, four at a time."""
    n = out.size
    for i in range(n):
        out[i] = start[i]
    whole = k - k % 4
    for a in range(0, whole, 4):
        m0, m1, m2, m3 = ids[MEMBERS, a], ids[MEMBERS, a + 1], ids[MEMBERS, a + 2], ids[MEMBERS, a + 3]
        b0, b1, b2, b3 = -v[BETA, a], -v[BETA, a + 1], -v[BETA, a + 2], -v[BETA, a + 3]
        for i in range(n):
            value = fma(b0, table[m0, i], out[i])
            value = fma(b1, table[m1, i], value)
            value = fma(b2, table[m2, i], value)
            out[i] = fma(b3, table[m3, i], value)
    for a in range(whole, k):
        m0, b0 = ids[MEMBERS, a], -v[BETA, a]
        for i in range(n):
            out[i] = fma(b0, table[m0, i], out[i])


@inlined
def subtract_coarse(start: Coarse, table: Coarse, k: int, v: Floats, ids: Integers, out: Coarse) -> None:
    """The same in single precision: twice as many numbers at a time."""
    n = out.size
    for i in range(n):
        out[i] = start[i]
    whole = k - k % 4
    for a in range(0, whole, 4):
        m0, m1, m2, m3 = ids[MEMBERS, a], ids[MEMBERS, a + 1], ids[MEMBERS, a + 2], ids[MEMBERS, a + 3]
        b0, b1 = np.float32(-v[BETA, a]), np.float32(-v[BETA, a + 1])
        b2, b3 = np.float32(-v[BETA, a + 2]), np.float32(-v[BETA, a + 3])
        for i in range(n):
            value = fma32(b0, table[m0, i], out[i])
            value = fma32(b1, table[m1, i], value)
            value = fma32(b2, table[m2, i], value)
            out[i] = fma32(b3, table[m3, i], value)
    for a in range(whole, k):
        m0, b0 = ids[MEMBERS, a], np.float32(-v[BETA, a])
        for i in range(n):
            out[i] = fma32(b0, table[m0, i], out[i])
