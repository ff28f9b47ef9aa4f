"""Projections of many t on the cone of labelled points.

    lam = argmin over lam >= 0 of || t - sum_i lam_i y_mu(i) x_i ||^2,   p = sum_i lam_i y_mu(i) x_i

(Chou, Le, Wang and Chung 2025, eq. 2.2; non-negative least squares). All t of a snapshot share the Gram matrix of the
points, and y only flips signs. Supports are small, so the cost grows with them and not with the dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.inputs import at_least
from waterjar.diagnose.geometry.points import Floats, Integers, Manifolds, in_own_order
from waterjar.diagnose.geometry.refined import refine, scaled
from waterjar.diagnose.geometry.rounding import Directions, rounding_of, without_rounding
from waterjar.diagnose.geometry.solver.layout import EXACT, GRAM, ROWS
from waterjar.diagnose.geometry.solver.projection import project_many
from waterjar.diagnose.geometry.solver.uniqueness import ONLY, uniqueness, zero_up_to
from waterjar.diagnose.geometry.workspace import room
from waterjar.errors import WaterjarError

Flags = NDArray[np.bool_]

KKT_LIMIT = 1e-9
"""A projection with a larger scaled residual is refined, and no result if that has no end."""
GAP_LIMIT = 1e-6
"""Residual times sum |beta| / |t| bounds how far |p|^2 / |t|^2 may be off: beyond this, too."""
_RESOLVED = 1e-11  # a residual above is worked on with orthogonalised points ...
_SHORT_T, _LONG_T = 1e-30, 1e30  # lengths of t with which single precision can look for violators
_SLICE, _QUICK = 10, 2**21  # draws at a time, where a draw may take long; and numbers in the points of all of these
_CANCELLING = 1e3  # ... and so are coefficients so large that the Gram matrix's rounding counts
_MOVED = 1e-5  # rounding of the points may move p by this share of |t| before it is looked at


@dataclass(frozen=True)
class Projections:
    """What is known of the projections: supports, coefficients, and how well each one is solved."""

    of: Manifolds
    t: Floats
    """(draw, dimension)"""
    y: Floats
    """(draw, manifold)"""
    scale: Floats
    """(draw) |t|"""
    products: Floats
    """(draw, point) u . t, the unit vectors u as sorted in `of`"""
    count: Integers
    """(draw) size of the support"""
    members: Integers
    """(draw, slot) its points, as sorted in `of`; slots from `count` on mean nothing"""
    beta: Floats
    """(draw, slot) their coefficients y lam |x|, those of the unit vectors"""
    square: Floats
    """(draw) |p|^2"""
    size: Floats
    """(draw) sum of |beta|"""
    residual: Floats
    """(draw) largest violation of the KKT conditions, divided by |x_i| |t|; of a refined draw, that before rounding"""
    margin: Floats
    """(draw) the smallest |beta|, or |u . (t - p)| of points outside the support, if it was asked for; 0: unknown"""
    nearest: Integers
    """(draw, manifold) the point with the largest y x . (t - p), if it was asked for"""
    mixing: Floats
    """(draw, slot) weights of the unit vectors in the anchors, |beta| / (the manifold's sum of lam); this and the next
    two if anchors were asked for"""
    active: Flags
    """(draw, manifold) whether it has an anchor"""
    own: Floats
    """(draw, manifold, manifold) inner products of the anchors"""
    refined: Floats
    """(draw, dimension) p of draws that were refined, which rounded coefficients do not give; else NaN; or empty"""
    directions: Directions
    """which of the points' directions are rounding, if it was asked for and a draw depends on it"""

    def only(self, draws: Integers) -> Projections:
        """Some of the draws."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("of", "directions")}
        return replace(self, **{name: array[draws] if len(array) else array for name, array in given.items()})

    def weights(self) -> Floats:
        """Beta (draw, point), the points as sorted in `of`."""
        full = np.zeros(self.products.shape)
        draws, slots = np.nonzero(np.arange(self.members.shape[1]) < self.count[:, None])
        full[draws, self.members[draws, slots]] = self.beta[draws, slots]
        return full

    def coefficients(self) -> Floats:
        """Lam (draw, point), the points in the order in which they were given."""
        lam = np.zeros(self.products.shape)
        lam[:, self.of.order] = np.abs(self.weights()) / np.where(self.of.norms > 0, self.of.norms, 1.0)
        return lam

    def points(self) -> Floats:
        """P (draw, dimension)."""
        p = self.weights() @ self.of.units
        return np.where(np.isnan(self.refined), p, self.refined) if self.refined.size else p


def project(
    of: Manifolds,
    t: Floats,
    y: Floats,
    *,
    start: Projections | None = None,
    nearest: bool = False,
    margin: bool = False,
    anchors: bool = False,
    drop_rounding: bool = False,
    workers: int = 1,
) -> Projections:
    """Project each t (draw, dimension) with its dichotomy y (draw, manifold) of -1 and +1.

    `start`: projections of the same t and y on earlier points; their supports are where the search begins. The result
    does not depend on it, to the last bit: a draw whose support rounding or dependent points could choose is solved
    from nothing. Nor does it depend on the number of threads, `workers`. What the Gram matrix cannot resolve is solved
    with the points in an order of their own, so that it does not depend on that of the samples what is solved.

    drop_rounding=True: where a draw depends on directions that only the rounding of recorded numbers has made, they are
    left out (see `rounding`), and `of` in the result is the points without them.

    >>> from waterjar.diagnose.geometry import manifolds
    >>> of = manifolds([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> found = project(of, np.array([[3.0, 4.0]]), np.array([[1.0, -1.0]]))
    >>> found.points(), float(found.square[0]), bool(found.residual[0] < 1e-15)
    (array([[3., 0.]]), 9.0, True)
    """
    t, y = np.ascontiguousarray(t, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64)
    points, dimension = of.units.shape
    if t.shape != (len(t), dimension) or y.shape != (len(t), of.count):
        raise WaterjarError(
            f"t of shape {t.shape} and y of shape {y.shape}: for these manifolds they must be (draw, {dimension}) and "
            f"(draw, {of.count})"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.sqrt(np.vecdot(t, t))
    usual = len(t) > 0 and scale.min() > _SHORT_T and scale.max() < _LONG_T
    if not usual and not (((scale > _SHORT_T) & (scale < _LONG_T)) | ~t.any(axis=1)).all():
        raise WaterjarError(
            f"t has NaN, or rows whose lengths are not between {_SHORT_T:g} and {_LONG_T:g}: the projection of c t is "
            "c times that of t, so that it can be given in another unit"
        )
    products = np.matmul(t, of.units.T, out=room((len(t), points)))
    empty = _unfilled(of, t, y, scale, products, nearest, margin or start is not None, anchors)
    if start is not None and (start.members.shape != empty.members.shape or (start.of.offsets != of.offsets).any()):
        raise WaterjarError(
            f"start has {len(start.t)} draws on manifolds of {start.of.sizes.tolist()} points, to be projected are "
            f"{len(t)} on {of.sizes.tolist()}: a support can only be carried over to the same draws and points"
        )
    first = GRAM if of.gram is not None else ROWS
    found = _solved(empty, first, start, workers)
    if start is not None:  # where rounding may choose, the way to the support must not
        again = np.flatnonzero(_is_hard(found) | (kinds(found) != ONLY))
        _solve_again(found, again, first, workers)
    if drop_rounding and _depends_on_rounding(found):
        cleaned, directions = without_rounding(of, of.gram)
        found = replace(found, directions=directions)
        if cleaned is not of:
            anew = project(cleaned, t, y, start=start, nearest=nearest, margin=margin, anchors=anchors, workers=workers)
            return replace(anew, directions=directions)
    hard = _is_hard(found).nonzero()[0]
    return _with_hard_ones(found, hard, first, workers) if len(hard) else found


def _depends_on_rounding(found: Projections) -> bool:
    """Whether rounding of the points may have moved a projection, or chosen the supports of some."""
    noise = rounding_of(found.of)
    if noise == 0.0 or len(found.t) == 0:
        return False
    moved = noise * found.size
    near = found.margin <= moved + noise * found.scale if found.margin.size else np.ones(1, np.bool_)
    return bool(near.any() or (moved > _MOVED * found.scale).any())


def _with_hard_ones(found: Projections, hard: Integers, first: int, workers: int) -> Projections:
    """These draws solved in every way there is, and the projections with them.

    Which of them have a solution in the end, and which one, may depend on the order in which points are taken. So it is
    one that does not depend on the order in which they were given.
    """
    of, rows, classes = in_own_order(found.of)
    products = (found.t @ of.units.T)[hard]  # of all: the bits of a product may depend on how many there are
    drawn = found.t[hard], found.y[np.ix_(hard, classes)], found.scale[hard], products
    part = _unfilled(of, *drawn, found.nearest.size > 0, False, found.own.size > 0)
    _solve_again(part, np.arange(len(hard)), ROWS, workers)
    exact = np.flatnonzero(~(part.residual <= _RESOLVED))
    if len(exact):
        _solve_again(part, exact, EXACT, workers, onward=True)
    _solve_again(part, np.arange(len(hard)), first, workers, onward=True)  # the way may have been hard: another start
    part = _refined(part, np.flatnonzero(~is_solved(part)))
    for name in ("count", "square", "size", "residual"):
        getattr(found, name)[hard] = getattr(part, name)
    for q, one, k in zip(hard.tolist(), range(len(hard)), part.count.tolist(), strict=True):
        members = rows[part.members[one, :k]]
        order = np.argsort(members)
        found.members[q, :k], found.beta[q, :k] = members[order], part.beta[one, order]
        if found.own.size:
            found.mixing[q, :k] = part.mixing[one, order]
    if found.margin.size:
        found.margin[hard] = 0.0
    if found.nearest.size:
        found.nearest[np.ix_(hard, classes)] = rows[part.nearest]
    if found.own.size:
        found.active[np.ix_(hard, classes)], found.own[np.ix_(hard, classes, classes)] = part.active, part.own
    # What was only a hard way has the bits that any other way to its support has, warm starts too.
    _solve_again(found, hard[~_is_hard(part)], first, workers, onward=True)
    refined = np.full((len(found.t) if part.refined.size else 0, found.t.shape[1]), np.nan)
    refined[hard if part.refined.size else []] = part.refined
    return replace(found, refined=refined)


def _is_hard(found: Projections) -> NDArray[np.bool_]:
    """(draw) what the Gram matrix cannot resolve."""
    hard: NDArray[np.bool_] = (found.residual > _RESOLVED) | (found.size > _CANCELLING * found.scale)
    return hard


def is_solved(found: Projections) -> Flags:
    """(draw) whether its projection is off by no more than `KKT_LIMIT` and `GAP_LIMIT`."""
    with np.errstate(invalid="ignore"):
        gap = found.residual * found.size
    solved: Flags = (found.residual <= KKT_LIMIT) & (gap <= GAP_LIMIT * found.scale)
    return solved


def _solve_again(found: Projections, draws: Integers, mode: int, workers: int, *, onward: bool = False) -> None:
    """Solve these draws again in another way, from nothing, or onward from where they are: then if it resolves them.

    A few at a time, so that one can interrupt it.
    """
    step = max(_SLICE, _QUICK // found.of.units.size) * workers
    for begin in range(0, len(draws), step):
        some = draws[begin : begin + step]
        drawn = found.t[some], found.y[some], found.scale[some], found.products[some]
        part = _unfilled(found.of, *drawn, found.nearest.size > 0, False, found.own.size > 0)
        if onward:
            part.count[:], part.members[:] = found.count[some], found.members[some]
        solved = _solved(part, mode, part if onward else None, workers)
        taken = ~_is_hard(solved) if onward and mode != EXACT else np.ones(len(some), np.bool_)
        for name in ("count", "members", "beta", "square", "size", "residual", "nearest", "mixing", "active", "own"):
            getattr(found, name)[some[taken]] = getattr(solved, name)[taken]
        found.margin[some if found.margin.size else []] = 0.0


def _refined(found: Projections, draws: Integers) -> Projections:
    """These draws solved again with twice the digits, where that has an end: see `refined`."""
    of = found.of
    p = np.full((len(found.t) if len(draws) else 0, found.t.shape[1]), np.nan)
    points = scaled(of.points)
    for q in draws.tolist():
        signs = found.y[q, of.owner]
        solved = refine(points, signs, found.t[q], found.members[q, : found.count[q]])
        if solved is None:
            continue
        members, k, p[q] = solved.members, len(solved.members), solved.p
        found.count[q], found.members[q, :k], found.beta[q, :k] = k, members, signs[members] * solved.beta
        found.square[q], found.size[q], found.residual[q] = solved.p @ solved.p, solved.beta.sum(), solved.residual
        if found.margin.size:
            found.margin[q] = 0.0
        if found.nearest.size:
            gain = of.norms * solved.g
            found.nearest[q] = [int(a + gain[a:b].argmax()) for a, b in pairwise(of.offsets.tolist())]
        if found.own.size:
            lam = np.zeros((of.count, k))
            lam[of.owner[members], np.arange(k)] = solved.beta / of.norms[members]
            total = lam.sum(axis=1, keepdims=True)
            weights = lam / np.where(total > 0.0, total, 1.0) * of.norms[members]
            anchors = weights @ of.units[members]
            found.active[q] = total[:, 0] > 0.0
            found.mixing[q, :k], found.own[q] = weights.sum(axis=0), anchors @ anchors.T
    return replace(found, refined=p)


def kinds(found: Projections) -> Integers:
    """(draw) whether its coefficients are the only ones: ONLY, DOUBTFUL, ONE_OF_MANY of `uniqueness`.

    They are where no point is near another support; only the other draws are looked at.
    """
    of, kind = found.of, np.full(len(found.t), ONLY)
    with np.errstate(over="ignore", invalid="ignore"):
        limit = zero_up_to(found.scale, found.size, found.residual)
    some = np.flatnonzero(~(found.margin > limit)) if found.margin.size else np.arange(len(limit))
    if len(some):
        table, mode = (of.units, ROWS) if of.gram is None else (of.gram, GRAM)
        columns, near = table if mode == GRAM else np.ascontiguousarray(table.T), np.empty(len(some), np.int64)
        uniqueness(
            mode, table, columns, found.products[some], found.t[some], found.y[some], of.owner, of.norms,
            found.count[some], found.members[some], found.beta[some], limit[some], near,
        )  # fmt: skip
        kind[some] = near
    return kind


def _unfilled(
    of: Manifolds,
    t: Floats,
    y: Floats,
    scale: Floats,
    products: Floats,
    nearest: bool,
    margin: bool,
    anchors: bool,
) -> Projections:
    """Projections to be filled in."""
    draws, slots = len(t), min(of.units.shape)
    supports = np.empty(draws, np.int64), room((draws, slots), np.int64), room((draws, slots))
    square, size, residual = np.empty((3, draws))
    asked = np.empty(draws if margin else 0), np.empty((draws, of.count if nearest else 0), np.int64)
    many = of.count if anchors else 0
    mixing, active = room((draws, slots if anchors else 0)), np.empty((draws, many), np.bool_)
    own = room((draws, many, many))
    return Projections(
        of, t, y, scale, products, *supports, square, size, residual, *asked, mixing, active, own,
        np.empty((0, t.shape[1])), Directions(min(of.units.shape)),
    )  # fmt: skip


def _solved(into: Projections, mode: int, start: Projections | None, workers: int) -> Projections:
    """Fill in, some draws at a time."""
    of, draws = into.of, len(into.t)
    table, t = of.gram if mode == GRAM and of.gram is not None else of.units, into.t
    if mode == ROWS:  # dimensions that are zero in all points change nothing, to the bit
        table, t = of.nonzero, into.t[:, of.alive]
    columns = table if mode == GRAM else np.ascontiguousarray(table.T)
    coarse = room(table.shape if mode == GRAM else (0, 0), np.float32)
    if mode == GRAM:
        np.copyto(coarse, table, casting="same_kind")
    begin = (np.zeros(draws, np.int64), into.members) if start is None else (start.count.copy(), start.members)

    def run(rows: slice) -> None:
        project_many(
            mode, table, columns, coarse, into.products[rows], t[rows], into.scale[rows], into.y[rows], of.owner,
            of.offsets, of.norms, begin[0][rows], begin[1][rows], into.count[rows], into.members[rows], into.beta[rows],
            into.square[rows], into.size[rows], into.residual[rows], into.margin[rows], into.nearest[rows],
            into.mixing[rows], into.active[rows], into.own[rows],
        )  # fmt: skip

    in_parts(draws, workers, run)
    return into


def in_parts(total: int, workers: int, run: Callable[[slice], object]) -> None:
    """Call `run` with slices that cover 0 ... total, in `workers` threads; errors are raised here."""
    if workers == 1:
        run(slice(0, total))
        return
    at_least("workers", workers, 1, "at least one has to do it")
    parts = min(total, 4 * workers)  # several each: some problems are harder than others
    slices = [slice(total * part // parts, total * (part + 1) // parts) for part in range(parts)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, slices))
