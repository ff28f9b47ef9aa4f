"""Whether the coefficients of a projection are the only ones, compiled.

The projection p always is the only one. Its coefficients are not, where a point outside the support lies on the face
that p is on, u . (t - p) = 0, and depends on the points of the support: some of their weight can then be handed to it.
That is so for all points where t is inside of the cone (p = t), and where a point stands twice.
"""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry.solver.compiled import entry
from waterjar.diagnose.geometry.solver.factor import append
from waterjar.diagnose.geometry.solver.layout import BETA, MEMBERS, QUEUE, Floats, Integers
from waterjar.diagnose.geometry.solver.problem import workspace
from waterjar.diagnose.geometry.solver.projection import HALF_ULP
from waterjar.diagnose.geometry.solver.violations import price

ONLY, DOUBTFUL, ONE_OF_MANY = 0, 1, 2
TIGHT = 1e-11  # |u . (t - p)| below this share of |t| is zero up to rounding


def zero_up_to(scale: Floats, size: Floats, residual: Floats) -> Floats:
    """(draw) below which u . (t - p) is zero up to rounding; scale = |t|, size = sum |beta|."""
    return np.maximum(np.maximum(TIGHT, 10.0 * residual) * scale, 8.0 * HALF_ULP * size)


@entry
def uniqueness(
    mode: int,
    table: Floats,
    columns: Floats,
    products: Floats,
    t: Floats,
    y: Floats,
    owner: Integers,
    norms: Floats,
    count: Integers,
    members: Integers,
    beta: Floats,
    limit: Floats,
    kind: Integers,
) -> None:
    """Write per draw: ONE_OF_MANY; DOUBTFUL if rounding may choose the support, though not the coefficients; ONLY.

    limit (draw): see `zero_up_to`.
    """
    work = workspace(mode, products.shape[1], t.shape[1], y.shape[1], members.shape[1])
    ids, v, g = work.ids, work.v, work.g
    for q in range(count.size):
        k, kind[q] = count[q], ONLY
        if limit[q] == 0.0:
            continue
        for a in range(k):
            ids[MEMBERS, a], ids[QUEUE, a], v[BETA, a] = members[q, a], members[q, a], beta[q, a]
            if abs(beta[q, a]) <= limit[q]:
                kind[q] = DOUBTFUL
        price(mode, table, columns, products[q], t[q], k, v, ids, g, work.r, work.basis)
        for a in range(k):
            g[members[q, a]] = math.inf
        found = 0
        for i in range(g.size):
            if abs(g[i]) <= limit[q] and norms[i] > 0.0:
                work.refused[found] = i
                found += 1
        if found == 0:
            continue
        kind[q] = DOUBTFUL
        k, left = append(mode, table, products[q], y[q], owner, k, 0, work.factor, v, ids, work.basis)
        place = 0
        while left == 0 and place < found:
            ids[QUEUE, 0] = work.refused[place]
            k, left = append(mode, table, products[q], y[q], owner, 1, k, work.factor, v, ids, work.basis)
            place += 1
        if left > 0:
            kind[q] = ONE_OF_MANY
