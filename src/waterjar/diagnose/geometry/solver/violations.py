"""What the points would gain: g = u . (t - p) of all of them, and the largest violations.

Positive numbers have the order of their bits, and a maximum of integers is vectorised: violations are compared as bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.solver.compiled import U, fma, fma32, inlined, inner
from waterjar.diagnose.geometry.solver.layout import BETA, EXACT, GRAM, MEMBERS, Coarse, Floats, Integers
from waterjar.diagnose.geometry.solver.problem import Problem, Work

MINUS, MINUS_COARSE = np.int64(-(2**63)), np.int32(-(2**31))  # the sign bit


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


@inlined
def price(
    mode: int,
    table: Floats,
    columns: Floats,
    h: Floats,
    t: Floats,
    k: int,
    v: Floats,
    ids: Integers,
    g: Floats,
    r: Floats,
    basis: Floats,
) -> None:
    """G at the present BETA."""
    if mode == GRAM:
        subtract(h, table, k, v, ids, g)
        return
    if mode == EXACT:
        subtract_exact(t, table, k, v, ids, r, basis)
    else:
        subtract(t, table, k, v, ids, r)
    n, whole = g.size, r.size - r.size % 4
    for i in range(n):
        g[i] = 0.0
    for d in range(0, whole, 4):
        r0, r1, r2, r3 = r[d], r[d + 1], r[d + 2], r[d + 3]
        for i in range(n):
            value = fma(r0, columns[d, i], g[i])
            value = fma(r1, columns[d + 1, i], value)
            value = fma(r2, columns[d + 2, i], value)
            g[i] = fma(r3, columns[d + 3, i], value)
    for d in range(whole, r.size):
        r0 = r[d]
        for i in range(n):
            g[i] = fma(r0, columns[d, i], g[i])


@inlined
def _most(y: Floats, offsets: Integers, bits: Integers, m: int) -> np.int64:
    """The largest violation y g of manifold m: as bits, 0 if there is none."""
    most, flip = np.int64(0), np.int64(0) if y[m] > 0.0 else MINUS
    for i in range(U(offsets[m]), U(offsets[m + 1])):
        most = max(most, bits[i] ^ flip)
    return most


@inlined
def _most_coarse(y: Floats, offsets: Integers, bits: NDArray[np.int32], m: int) -> np.int32:
    """The same in single precision."""
    most, flip = np.int32(0), np.int32(0) if y[m] > 0.0 else MINUS_COARSE
    for i in range(U(offsets[m]), U(offsets[m + 1])):
        most = max(most, np.int32(bits[i] ^ flip))
    return most


@inlined
def largest(y: Floats, offsets: Integers, bits: Integers, violation: Integers) -> np.int64:
    """The largest violation of each manifold, and of all."""
    top = np.int64(0)
    for m in range(y.size):
        violation[m] = _most(y, offsets, bits, m)
        top = max(top, violation[m])
    return top


@inlined
def largest_coarse(y: Floats, offsets: Integers, bits: NDArray[np.int32], violation: Integers) -> np.int64:
    """The same in single precision."""
    top = np.int64(0)
    for m in range(y.size):
        violation[m] = _most_coarse(y, offsets, bits, m)
        top = max(top, violation[m])
    return top


@inlined
def take(of: Problem, coarse: bool, m: int, more: bool, work: Work) -> int:
    """The point of manifold m with its largest violation; if `more` of it may be taken, that then is the next one's."""
    y, offsets, highest = of.y, of.offsets, work.violation[m]
    i = int(offsets[m])
    if coarse:
        wanted = np.int32(highest) if y[m] > 0.0 else np.int32(np.int32(highest) ^ MINUS_COARSE)
        while work.bits_coarse[U(i)] != wanted:
            i += 1
        if more:
            work.g_coarse[i] = 0.0
            work.violation[m] = _most_coarse(y, offsets, work.bits_coarse, m)
    else:
        exactly = highest if y[m] > 0.0 else highest ^ MINUS
        while work.bits[U(i)] != exactly:
            i += 1
        if more:
            work.g[i] = 0.0
            work.violation[m] = _most(y, offsets, work.bits, m)
    return i


@inlined
def prices(of: Problem, coarse: bool, k: int, refused: int, work: Work) -> tuple[np.int64, float, float]:
    """G but for members and refused points; its largest violation as bits and as a number, that of refused ones."""
    v, ids, g = work.v, work.ids, work.g
    blocked = 0.0
    if coarse:
        subtract_coarse(work.h_coarse, of.coarse, k, v, ids, work.g_coarse)
        for a in range(k):
            work.g_coarse[ids[MEMBERS, a]] = 0.0
        for a in range(refused):
            i = work.refused[a]
            blocked = max(blocked, of.y[of.owner[i]] * work.g_coarse[i])
            work.g_coarse[i] = 0.0
        highest = largest_coarse(of.y, of.offsets, work.bits_coarse, work.violation)
        work.number_bits_coarse[0] = highest
        top = float(work.number_coarse[0])
    else:
        price(of.mode, of.table, of.columns, of.h, of.t, k, v, ids, g, work.r, work.basis)
        for a in range(k):
            g[ids[MEMBERS, a]] = 0.0
        for a in range(refused):
            i = work.refused[a]
            blocked = max(blocked, of.y[of.owner[i]] * g[i])
            g[i] = 0.0
        highest = largest(of.y, of.offsets, work.bits, work.violation)
        work.number_bits[0] = highest
        top = work.number[0]
    return highest, top, blocked


@inlined
def bits(value: float, coarse: bool, work: Work) -> np.int64:
    """A number as bits."""
    if coarse:
        work.number_coarse[0] = value
        return np.int64(work.number_bits_coarse[0])
    work.number[0] = value
    return np.int64(work.number_bits[0])
