"""In which draws other anchors are as good as those that were found.

The projection p is the only one. Points with u . (t - p) = 0 span the face that it lies on, and where one of them
depends on the support, x_j = sum_i c_i x_i, weight can be handed from these to it. No anchor changes by that if all i
are of j's manifold and the c_i add up to 1: j stands twice, or between them. Otherwise (a point in the same direction
but longer, one that two manifolds share, t inside the cone) the anchors are the solver's choice, which depends on the
order of the samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from waterjar.diagnose.geometry.cone import Projections, kinds
from waterjar.diagnose.geometry.points import Floats, Integers
from waterjar.diagnose.geometry.refined import SOLVED
from waterjar.diagnose.geometry.solver.layout import DEPENDENT
from waterjar.diagnose.geometry.solver.uniqueness import ONE_OF_MANY, zero_up_to

Flags = NDArray[np.bool_]

INSIDE = 1e-9
"""t is inside the cone where |t - p| is below this share of |t|, but for its part that is orthogonal to all points."""
SAME = 1e-8
"""Anchors whose weights differ by less are the same: points of a manifold may differ by rounding."""
_ROUNDING = 1e-14  # a unit vector that is nearer to the span of others is in it


def has_other_anchors(found: Projections) -> Flags:
    """(draw) whether there are other anchors with the same projection.

    >>> from waterjar.diagnose.geometry import manifolds, project
    >>> t, y = np.array([[1.0, 1.0]]), np.ones((1, 2))
    >>> for longer in (1.0, 2.0):
    ...     points = [[1.0, 0.0], [longer, 0.0], [0.0, 1.0]]
    ...     print(has_other_anchors(project(manifolds(points, [0, 0, 1]), t, y)))
    [False]
    [ True]
    """
    of = found.of
    free: Flags = kinds(found) == ONE_OF_MANY
    draws = np.flatnonzero(free)
    if len(draws) == 0:
        return free
    some = found.only(draws)
    near = np.abs((some.t - some.points()) @ of.units.T)
    limit = zero_up_to(some.scale, some.size, some.residual)
    if some.refined.size:  # p has all its digits, whatever cancelled
        limit = np.where(np.isnan(some.refined[:, 0]), limit, 2.0 * SOLVED * some.scale)
    rows: dict[tuple[int, bytes], int] = {}
    standing = enumerate(zip(of.owner.tolist(), of.points + 0.0, strict=True))
    same = np.array([rows.setdefault((owner, row.tobytes()), i) for i, (owner, row) in standing])
    told: dict[bytes, bool] = {}  # a face has one answer, whichever support stands for it
    for place, draw in enumerate(draws.tolist()):
        members = some.members[place, : some.count[place]]
        face = (near[place] <= limit[place]) & (of.norms > 0)
        face[members] = True
        key = face.tobytes()
        if key not in told:
            twice = np.zeros(len(same), np.bool_)
            twice[same[members]] = True
            told[key] = _change_anchors(found, members, np.flatnonzero(face & ~twice[same]))
        free[draw] = told[key]
    return free


def _change_anchors(found: Projections, members: Integers, others: Integers) -> bool:
    """Whether one of the others depends on the members (a support), and taking it in changes an anchor."""
    if len(others) == 0:
        return False
    of = found.of
    q, r, order = qr(of.units[members].T, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(r)) > _ROUNDING).sum())  # rounding may have let in a member that depends on the rest
    members, others = members[order[:rank]], np.concatenate([others, members[order[rank:]]])
    q, r = q[:, :rank], r[:rank, :rank]
    along = q.T @ of.units[others].T
    away = of.units[others].T - q @ along
    dependent = np.einsum("dj,dj->j", away, away) <= DEPENDENT
    others, c = others[dependent], solve_triangular(r, along[:, dependent])
    own = of.owner[members][:, None] == of.owner[others]
    total = np.where(own, c * of.norms[others] / of.norms[members][:, None], 0.0).sum(axis=0)
    return bool((np.abs(total - 1.0) > SAME).any() or (np.abs(c[~own]) > SAME).any())


def is_inside(found: Projections, draws: Integers) -> Flags:
    """(one of the draws) whether t, or its part in the span of the points, is inside the cone."""
    of, some = found.of, found.only(draws)
    rest: Floats = some.t - some.points()
    inside: Flags = np.abs(rest @ of.units.T).max(axis=1, initial=0.0) <= INSIDE * some.scale
    alive = of.units.any(axis=0)  # dead units have no part in the span
    unsure = inside & (np.linalg.norm(rest[:, alive], axis=1) > INSIDE * some.scale)
    if unsure.any():
        _, lengths, axes = np.linalg.svd(of.units[:, alive], full_matrices=False)
        span = axes[lengths > lengths[0] * max(of.units.shape) * np.finfo(np.float64).eps]
        inside[unsure] = np.linalg.norm(rest[unsure][:, alive] @ span.T, axis=1) <= INSIDE * some.scale[unsure]
    return inside
