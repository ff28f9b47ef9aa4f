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
from scipy.linalg.lapack import dgeqp3, dorgqr, dtrtrs

from waterjar.diagnose.geometry.cone import Projections, kinds
from waterjar.diagnose.geometry.points import Floats, Integers, Manifolds
from waterjar.diagnose.geometry.solver.layout import DEPENDENT
from waterjar.diagnose.geometry.solver.refining import SOLVED
from waterjar.diagnose.geometry.solver.uniqueness import ONE_OF_MANY, zero_up_to

Flags = NDArray[np.bool_]

INSIDE = 1e-9
"""t is inside the cone where |t - p| is below this share of |t|, but for its part that is orthogonal to all points."""
SAME = 1e-8
"""Anchors whose weights differ by less are the same: points of a manifold may differ by rounding."""
_ROUNDING = 1e-14  # a unit vector that is nearer to the span of others is in it
_FIRST = 4  # others that are looked at first: mostly, one of them changes an anchor


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
    faces = (near <= limit[:, None]) & (of.norms > 0)
    told: dict[bytes, bool] = {}  # a face has one answer, whichever support stands for it
    for place, draw in enumerate(draws.tolist()):
        members = some.members[place, : some.count[place]]
        face = faces[place]
        face[members] = True
        key = face.tobytes()
        if key not in told:
            twice = np.zeros(len(same), np.bool_)
            twice[same[members]] = True
            told[key] = _change_anchors(of, members, np.flatnonzero(face & ~twice[same]))
        free[draw] = told[key]
    return free


def _change_anchors(of: Manifolds, members: Integers, others: Integers) -> bool:
    """Whether one of the others depends on the members (a support), and taking it in changes an anchor."""
    if len(others) == 0 or len(members) == 0:
        return False
    units = of.nonzero
    q, r, order = _pivoted(units[members].T)
    rank = np.count_nonzero(np.abs(r.diagonal()) > _ROUNDING)
    if rank < len(members):  # rounding may have let in a member that depends on the rest
        others = np.concatenate([others, members[order[rank:]]])
        order, q, r = order[:rank], q[:, :rank], r[:rank, :rank]
    members = members[order]
    for part in (others[:_FIRST], others[_FIRST:]):
        along = q.T @ units[part].T
        away = units[part].T - q @ along
        dependent = np.einsum("dj,dj->j", away, away) <= DEPENDENT
        if dependent.any():
            some, c = part[dependent], dtrtrs(r, along[:, dependent])[0]
            own = of.owner[members][:, None] == of.owner[some]
            total = np.where(own, c * of.norms[some] / of.norms[members][:, None], 0.0).sum(axis=0)
            if (np.abs(total - 1.0) > SAME).any() or (np.abs(c[~own]) > SAME).any():
                return True
    return False


def _pivoted(columns: Floats) -> tuple[Floats, Floats, Integers]:
    """The QR factors of columns, the most independent ones first, and their order; scipy's own way takes far longer."""
    k, room = min(columns.shape), 64 * (columns.shape[1] + 1)
    packed, order, tau, _, _ = dgeqp3(columns, lwork=room)
    return dorgqr(packed[:, :k], tau, lwork=room)[0], packed[:k], order - 1


def is_inside(found: Projections, draws: Integers) -> Flags:
    """(one of the draws) whether t, or its part in the span of the points, is inside the cone."""
    of, some = found.of, found.only(draws)
    rest: Floats = some.t - some.points()
    inside: Flags = np.abs(rest @ of.units.T).max(axis=1, initial=0.0) <= INSIDE * some.scale
    rest = rest[:, of.alive]  # the other dimensions have no part in the span
    unsure = inside & (np.linalg.norm(rest, axis=1) > INSIDE * some.scale)
    if unsure.any():
        _, lengths, axes = np.linalg.svd(of.nonzero, full_matrices=False)
        span = axes[lengths > lengths[0] * max(of.units.shape) * np.finfo(np.float64).eps]
        inside[unsure] = np.linalg.norm(rest[unsure] @ span.T, axis=1) <= INSIDE * some.scale[unsure]
    return inside
