"""Columns of the Cholesky factor, four at a time.

One column is a chain of steps that wait for each other, and that wait is most of its time. Four take as long as one.
"""

from __future__ import annotations

import math

from waterjar.diagnose.geometry.solver.compiled import U, inlined, inner
from waterjar.diagnose.geometry.solver.lanes import WIDTH, Four, add, lane, load, pack, scale, store, zero
from waterjar.diagnose.geometry.solver.layout import BETA, DEPENDENT, INVERSE, MEMBERS, QUEUE, SIGN, C, Floats, Integers


@inlined
def _divided(k: int, factor: Floats, v: Floats, panel: Floats) -> tuple[Four, Four, Four, Four, Four]:
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
def append_panels(
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
    """`append` of `factor` with a Gram matrix: four points at a time, whose columns do not wait for each other."""
    left, first = 0, U(0)
    for start in range(0, count, WIDTH):
        width, before = min(WIDTH, count - start), k
        i0, i1 = U(ids[QUEUE, start]), U(ids[QUEUE, start + min(1, width - 1)])  # the last one, where there are less
        i2, i3 = U(ids[QUEUE, start + min(2, width - 1)]), U(ids[QUEUE, start + width - 1])
        for a in range(U(k)):
            m = U(ids[MEMBERS, a])
            store(panel, a, first, pack(table[i0, m], table[i1, m], table[i2, m], table[i3, m]))
        g0 = pack(table[i0, i0], table[i0, i1], table[i0, i2], table[i0, i3])
        g1 = pack(table[i1, i0], table[i1, i1], table[i1, i2], table[i1, i3])
        g2 = pack(table[i2, i0], table[i2, i1], table[i2, i2], table[i2, i3])
        s0, s1, s2, s3, along = _divided(k, factor, v, panel)
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
