"""Manifold capacity and its geometry from anchors (GLUE; Chou, Le, Wang and Chung 2025).

For draws of t ~ N(0, I) and dichotomies y, with p the projection of t on the cone of the labelled points and s^mu =
sum_i lam_i^mu x_i^mu / sum_i lam_i^mu the anchors (WITHOUT y), S their stack (manifold, dimension), S0 the mean of S
over draws, S1 = S - S0:

    a = |p|^2 = (St)' (SS')^+ (St),  b = (S1 t)' (S1 S1')^+ (S1 t),  c = (S1 t)' (S0 S0' + S1 S1')^+ (S1 t)
    capacity = P / E[a],  dimension = E[b] / P,  radius = sqrt(E[c] / E[b - c]),  utility = E[c] / E[a]

so that capacity = utility (1 + radius^-2) / dimension. `capacity_approx` = (1 + radius^-2) / dimension leaves utility
out, as eq. B.7 does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.geometry.choice import has_other_anchors, is_inside
from waterjar.diagnose.geometry.cone import GAP_LIMIT, KKT_LIMIT, Projections, is_solved, project
from waterjar.diagnose.geometry.draws import Dichotomies, directions
from waterjar.diagnose.geometry.draws import dichotomies as draw_dichotomies
from waterjar.diagnose.geometry.estimates import SCALARS, shifts, summary
from waterjar.diagnose.geometry.inputs import Rng, at_least, checked_rng
from waterjar.diagnose.geometry.points import Floats, Integers, Manifolds, manifolds
from waterjar.diagnose.geometry.rounding import in_words
from waterjar.diagnose.geometry.solver import anchors as kernel
from waterjar.diagnose.geometry.workspace import room
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.schema import REASONS

Inactive: TypeAlias = Literal["zero", "active_only", "support"]

PAIRS = ("center_cosine", "axis_cosine", "center_axis_cosine", "center_inner", "axis_inner", "center_axis_inner")
"""The measures of pairs of manifolds."""
PER_MANIFOLD = ("manifold_dimension", "manifold_radius", "manifold_inactive_share")
"""The measures of each manifold."""
OF_PROJECTIONS = ("nonunique_share", "inside_share", "left_out_draws", "support", "kkt")
"""What is known of the projections themselves, whichever anchors they have."""
OF_POINTS = ("dropped_directions", "doubtful_directions")
"""What is known of the points before anything is projected."""
NUMBERS = (*SCALARS, *PER_MANIFOLD, *PAIRS, *OF_PROJECTIONS, *OF_POINTS)
"""All numbers of a geometry, by name."""
FEW = 0.05
"""The share of draws that may be left out unsolved, or have other anchors as good; above it numbers are missing."""
_NO_ERROR = "one pair of draws alone has no standard error, nor has a radius of zero"


@dataclass(frozen=True, eq=False)
class Geometry(Mapping[str, Result]):
    """The geometry of one set of manifolds: numbers by name, each with its reason, standard error and `n_t` draws.

    | name | what it is |
    |---|---|
    | those of `SCALARS` | one number with a standard error |
    | manifold_dimension, manifold_radius, manifold_inactive_share | (manifold); the first one's mean is `dimension` |
    | center_cosine, axis_cosine | (manifold, manifold), axes over the draws in which both are not zero |
    | center_axis_cosine | (centre's manifold, axis' manifold) |
    | center_inner, axis_inner, center_axis_inner | the same with absolute inner products |
    | nonunique_share | share of draws in which other anchors are as good |
    | inside_share | share of draws in which they are because t is inside the cone |
    | left_out_draws | number of draws that could not be solved (see `cone.is_solved`), and count in no mean |
    | support | mean number of points with a positive coefficient |
    | kkt | largest scaled residual of the projections that count |
    | dropped_directions | number of directions that only rounding made, before the numbers were given: left out |
    | doubtful_directions | number of those that may be rounding, and are not left out |

    Capacity is made of p, which is the only one. Anchors are made of lam, which is not where points on p's face depend
    on each other (see `choice`): they are then whatever the solver takes. Where that is so in more than 5 % of the
    draws, all that is made of anchors is missing: as `inside_cone` if t, or its part in the span of the points, is
    inside the cone in more than 5 %, else as `not_unique`. A point that stands twice in its manifold changes no anchor.
    """

    numbers: Mapping[str, Any]
    """As calculated, NaN where missing; `<name>_se` is a standard error."""
    labels: NDArray[np.generic]
    """(manifold)"""
    n_points: NDArray[np.int64]
    """(manifold)"""
    n_t: int
    dichotomies: str
    inactive: str
    center: bool
    reason: str = "undefined"
    """Why numbers are missing, where they are."""
    note: str = "a centre or all axes are zero, a mean has no draw, or b - c is rounding"
    """The same in words."""

    def __getitem__(self, name: str) -> Result:
        if name not in NUMBERS:
            raise KeyError(name)
        value, lost = self.numbers[name], self.numbers["left_out_draws"]
        n = self.n_t if math.isnan(lost) else self.n_t - int(lost)
        said = [f"{int(lost)} of {self.n_t} draws could not be solved, and are left out"] if n < self.n_t else []
        said += in_words(*(self.numbers[of_points] for of_points in OF_POINTS))
        free = self.numbers["nonunique_share"]
        if free > 0 and name not in (*OF_PROJECTIONS, *OF_POINTS, "capacity", "capacity_se"):
            said.append(f"other anchors are as good in {round(free * n)} of {n} draws")
        fewer = "; ".join(said)
        if isinstance(value, np.ndarray):
            missing = np.isnan(value)
            note = self.note if missing.any() else fewer
            return Result(value, np.where(missing, np.uint8(REASONS.index(self.reason)), np.uint8(0)), n, note=note)
        error = self.numbers.get(f"{name}_se", math.nan)
        if math.isnan(value):
            return Result(value, self.reason, n, error, note=self.note)
        lacks = name in SCALARS and math.isnan(error)
        return Result(value, n=n, standard_error=error, note=_NO_ERROR if lacks else fewer)

    def __iter__(self) -> Iterator[str]:
        return iter(NUMBERS)

    def __len__(self) -> int:
        return len(NUMBERS)


def manifold_geometry(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    n_t: int = 100,
    rng: Rng = 0,
    dichotomies: Dichotomies = "uniform",
    inactive: Inactive = "zero",
    center: bool = False,
    workers: int = 1,
) -> Geometry:
    """Capacity, dimension, radius and alignments of the manifolds that labels (point) make of points (point, unit).

    inactive: what stands for the anchor of a manifold with sum lam = 0, which has none.

    - zero: a zero row, which counts in all means.
    - active_only: nothing. Centres are means over the draws in which the manifold is active; a draw's b and c come from
      its active manifolds, and `dimension` is E[b] / E[how many these are].
    - support: its point with the largest y x . (t - p), the one that would become active first; what the active anchors
      are, too.

    Alignments are means over pairs of manifolds: of cosines, and under `_inner` of absolute inner products. Capacity
    uses |p|^2 and does not depend on `inactive`. center=True removes the mean of all points first. Standard errors are
    over draws (jackknife, or infinitesimal jackknife with the draws' effect on S0), given these points. Where b - c is
    rounding (more manifolds than twice the dimension: c = b), radius and `capacity_approx` are undefined.

    >>> found = manifold_geometry(np.eye(3), [0, 1, 2], n_t=2000)
    >>> abs(float(found["capacity"]) - 2) < 3 * found["capacity"].standard_error
    True
    """
    if inactive not in get_args(Inactive):
        raise unknown_name("inactive", inactive, get_args(Inactive))
    n_t = at_least("n_t", n_t, 2, "at least 2 draws are needed for a mean with an error")
    checked_rng(rng)
    of, dichotomy = manifolds(points, labels, center=center), dichotomies if isinstance(dichotomies, str) else "given"
    if not np.isfinite(of.norms).all():
        return _missing(of, "not_a_number", "the points have NaN or infinite values", n_t, dichotomy, inactive, center)
    if of.count == 1:
        note = "there is one manifold only: nothing to separate"
        return _missing(of, "undefined", note, n_t, dichotomy, inactive, center)
    y = draw_dichotomies(dichotomies, n_t, of.count, rng)
    pairs = dichotomy == "opposite_pairs"
    t = directions(n_t // 2 if pairs else n_t, of.units.shape[1], rng)
    t = np.repeat(t, 2, axis=0) if pairs else t
    found = project(
        of, t, y, nearest=inactive == "support", margin=True, anchors=True, drop_rounding=True, workers=workers
    )
    return geometry_of(found, inactive=inactive, paired=pairs, dichotomies=dichotomy, center=center)


def geometry_of(
    found: Projections, *, inactive: Inactive, paired: bool, dichotomies: str = "given", center: bool = False
) -> Geometry:
    """The measures of projections with their anchors.

    paired: draws 2k and 2k + 1 are not independent. `dichotomies` and `center` say how the projections were made.
    """
    of, n = found.of, len(found.t)
    asked = n, dichotomies, inactive, center
    if found.own.shape[1] == 0:
        raise WaterjarError("these projections have no anchors: they must be asked for, by project(..., anchors=True)")
    fine = is_solved(found)
    failed = n - int(np.count_nonzero(fine))
    if failed > FEW * n:
        note = (
            f"{failed} of {n} projections have a KKT residual above {KKT_LIMIT:g} (up to {found.residual.max():.1e}), "
            f"or one that leaves |p|^2 uncertain by more than {GAP_LIMIT:g} |t|^2, also with twice the digits: points "
            "differ by rounding only"
        )
        return _missing(of, "unsolved", note, *asked)
    if failed:
        fine = np.repeat(fine.reshape(-1, 2).all(axis=1), 2) if paired else fine
        found = found.only(np.flatnonzero(fine))
    if not found.square.any():
        return _missing(of, "undefined", "no point is ever active: E|p|^2 is 0", *asked)
    support, (own, mixed, centers), to_center, along, active, draws = _products(found, inactive)
    used = active if inactive == "active_only" else np.ones(active.shape, np.bool_)
    table, solved = np.empty((len(own), kernel.COLUMNS)), np.zeros((len(own), 2, of.count))
    parts, sums = np.zeros((2, of.count)), np.zeros((kernel.LAYERS, of.count, of.count))
    kernel.measure_draws(own, mixed, centers, along, used, draws, table, parts, solved, sums)
    shift = shifts(found, support, (own, mixed, centers), to_center, used, draws, solved)
    result: dict[str, Any] = summary(found.square, (table, parts, sums), used, active, centers, draws, shift, paired)
    kept, other = len(found.t), np.flatnonzero(has_other_anchors(found))
    inside = int(is_inside(found, other).sum()) if len(other) else 0
    result.update(
        nonunique_share=len(other) / kept,
        inside_share=inside / kept,
        left_out_draws=float(n - kept),
        support=int(found.count.sum()) / kept,
        kkt=float(found.residual.max()),
        dropped_directions=float(found.directions.dropped),
        doubtful_directions=float(found.directions.doubtful),
    )
    _scale_back(result, of.exponent)
    if len(other) <= FEW * kept:
        return Geometry(result, of.names, of.sizes, *asked)
    reason, note = "not_unique", f"other anchors are as good in {len(other)} of {kept} draws: these are one choice"
    if inside > FEW * kept:
        reason = "inside_cone"
        note = f"t is inside the cone in {inside} of {kept} draws, where many anchors are as good: these are one choice"
    chosen = _missing(of, reason, note, *asked)
    stays = {name: result[name] for name in (*OF_PROJECTIONS, *OF_POINTS, "capacity", "capacity_se")}
    return replace(chosen, numbers={**chosen.numbers, **stays})


def _scale_back(result: dict[str, Any], exponent: int) -> None:
    """Give inner products the points' own scale; those that float64 cannot hold are missing."""
    if exponent == 0:
        return
    inner = [name + end for name in SCALARS if name.endswith("_inner") for end in ("", "_se")]
    for name in [*inner, *(name for name in PAIRS if name.endswith("_inner"))]:
        with np.errstate(over="ignore", under="ignore"):
            value = np.asarray(result[name], np.float64)
            scaled = np.ldexp(value, 2 * exponent)
        scaled = np.where(np.isinf(scaled) | ((scaled == 0) & (value != 0)), math.nan, scaled)
        result[name] = scaled if scaled.ndim else float(scaled)


Support: TypeAlias = tuple[Integers, Integers, Floats]


def _products(
    found: Projections, inactive: Inactive
) -> tuple[Support, tuple[Floats, Floats, Floats], Floats, Floats, NDArray[np.bool_], Integers]:
    """The supports of anchors; S S', S S0' (draw, manifold, manifold), S0 S0'; u . S0; S1 t (draw, manifold); `active`.

    A support is (count, members, weights). Last comes (manifold) over how many draws its centre is the mean.
    """
    of, draws = found.of, len(found.t)
    count, members, weights, active, own = found.count, found.members, found.mixing, found.active, found.own
    if inactive == "support":
        count, members, weights = _with_nearest(found)
        own = _own_products(found, count, members, weights)
    counted = active.sum(axis=0) if inactive == "active_only" else np.full(of.count, draws)
    s0 = np.zeros((of.count, of.units.shape[1]))
    kernel.mean_anchors(count, members, weights, of.owner, counted, of.units, s0)
    to_center = of.units @ s0.T
    mixed, along = room(own.shape), -(found.t @ s0.T)
    mixed.fill(0.0)
    kernel.center_products(found.products, count, members, weights, of.owner, to_center, mixed, along)
    return (count, members, weights), (own, mixed, s0 @ s0.T), to_center, along, active, counted


def _with_nearest(found: Projections) -> Support:
    """Supports with the nearest point of each inactive manifold in it, at its full length."""
    count = found.count + (~found.active).sum(axis=1)
    members = np.pad(found.members, ((0, 0), (0, found.of.count)))
    weights = np.pad(found.mixing, ((0, 0), (0, found.of.count)))
    for q, k in enumerate(found.count):
        nearest = found.nearest[q, ~found.active[q]]
        members[q, k : count[q]], weights[q, k : count[q]] = nearest, found.of.norms[nearest]
    return count, members, weights


def _own_products(found: Projections, count: Integers, members: Integers, weights: Floats) -> Floats:
    """S S' (draw, manifold, manifold) of any supports."""
    of, own = found.of, np.empty(found.own.shape)
    if of.gram is not None:
        kernel.own_products(of.gram, count, members, weights, of.owner, own)
        return own
    for q, k in enumerate(count):  # too many points for all their products: those of one support after the other
        rows, one = members[q, :k], slice(q, q + 1)
        local = of.units[rows]
        kernel.own_products(local @ local.T, count[one], np.arange(k)[None], weights[one], of.owner[rows], own[one])
    return own


def _missing(
    of: Manifolds, reason: str, note: str, n_t: int, dichotomies: str, inactive: str, center: bool
) -> Geometry:
    """A result of which nothing is known but what was asked."""
    numbers: dict[str, Any] = dict.fromkeys([*NUMBERS, *(f"{name}_se" for name in SCALARS)], math.nan)
    numbers |= {name: np.full(of.count, math.nan) for name in PER_MANIFOLD}
    numbers |= {name: np.full((of.count, of.count), math.nan) for name in PAIRS}
    return Geometry(numbers, of.names, of.sizes, n_t, dichotomies, inactive, center, reason, note)
