"""The Cholesky factor of a growing and shrinking set of points: what the active set of `projection` works with.

Few and plain arrays, indexed and never sliced: the smallest problems take two microseconds, and a slice or a tuple of
arrays handed from function to function costs a tenth of that. The factor R stands above the diagonal and its transpose
below, so that both substitutions run along rows.
"""

from __future__ import annotations

import math

from waterjar.diagnose.geometry.solver.compiled import U, fma, inlined, inner
from waterjar.diagnose.geometry.solver.lanes import WIDTH, lane, load, product, zero
from waterjar.diagnose.geometry.solver.layout import (
    BETA,
    COLUMN,
    DEPENDENT,
    DEPENDENT_EXACT,
    EXACT,
    GRAM,
    INVERSE,
    MEMBERS,
    QUEUE,
    ROWS,
    SIGN,
    C,
    Floats,
    Integers,
    Z,
)
from waterjar.diagnose.geometry.solver.panels import append_panels


@inner
def dot(basis: Floats, a: int, b: int) -> float:
    """Product of two rows, in eight sums that do not wait for each other."""
    dimension = basis.shape[1]
    whole = dimension - dimension % 8
    x, z = zero(), zero()
    for d in range(U(0), U(whole), U(8)):
        x = product(load(basis, U(a), d), load(basis, U(b), d), x)
        z = product(load(basis, U(a), d + U(WIDTH)), load(basis, U(b), d + U(WIDTH)), z)
    first = lane(x, 0)
    for d in range(whole, dimension):
        first = fma(basis[a, d], basis[b, d], first)
    return ((first + lane(x, 1)) + (lane(x, 2) + lane(x, 3))) + ((lane(z, 0) + lane(z, 1)) + (lane(z, 2) + lane(z, 3)))


@inner
def orthogonalise(table: Floats, i: int, k: int, v: Floats, basis: Floats) -> float:
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
def substitute(k: int, factor: Floats, v: Floats) -> float:
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
    if mode == GRAM and count > 2:  # one or two are as fast alone
        return append_panels(table, h, y, owner, count, k, factor, v, ids, basis)
    left = 0
    for place in range(count):
        i = ids[QUEUE, place]
        rest, least = 0.0, DEPENDENT
        if k < v.shape[1]:
            if mode == EXACT:
                rest, least = orthogonalise(table, i, k, v, basis), DEPENDENT_EXACT
            else:
                if mode == GRAM:
                    for a in range(k):
                        v[COLUMN, a] = table[i, U(ids[MEMBERS, a])]
                else:
                    _products(table, i, k, v, basis)
                rest = substitute(k, factor, v)
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
    substitute(k, factor, v)
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
