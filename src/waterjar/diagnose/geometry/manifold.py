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
from typing import Any, Literal, TypeAlias, TypedDict, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.geometry.cone import (
    KKT_LIMIT,
    Floats,
    Integers,
    Manifolds,
    Projections,
    kinds,
    manifolds,
    project,
)
from waterjar.diagnose.geometry.draws import Dichotomies, directions
from waterjar.diagnose.geometry.draws import dichotomies as draw_dichotomies
from waterjar.diagnose.geometry.estimates import SCALARS, shifts, summary
from waterjar.diagnose.geometry.inputs import Rng, at_least, checked_rng
from waterjar.diagnose.geometry.solver import anchors as kernel
from waterjar.diagnose.geometry.solver.uniqueness import ONE_OF_MANY
from waterjar.diagnose.geometry.workspace import room
from waterjar.errors import WaterjarError, unknown_name

Inactive: TypeAlias = Literal["zero", "active_only", "support"]

PAIRS = ("center_cosine", "axis_cosine", "center_axis_cosine", "center_inner", "axis_inner", "center_axis_inner")
"""The measures of pairs of manifolds."""
PER_MANIFOLD = ("manifold_dimension", "manifold_radius", "manifold_inactive_share")
"""The measures of each manifold."""


class Geometry(TypedDict):
    """The geometry of one set of manifolds. Missing is NaN, with its reason under `reasons`."""

    capacity: float
    capacity_approx: float
    dimension: float
    radius: float
    utility: float
    center_alignment: float
    axis_alignment: float
    center_axis_alignment: float
    center_alignment_inner: float
    axis_alignment_inner: float
    center_axis_alignment_inner: float
    inactive_share: float
    capacity_se: float
    capacity_approx_se: float
    dimension_se: float
    radius_se: float
    utility_se: float
    center_alignment_se: float
    axis_alignment_se: float
    center_axis_alignment_se: float
    center_alignment_inner_se: float
    axis_alignment_inner_se: float
    center_axis_alignment_inner_se: float
    inactive_share_se: float
    manifold_dimension: Floats
    """(manifold); their mean is `dimension`"""
    manifold_radius: Floats
    """(manifold)"""
    manifold_inactive_share: Floats
    """(manifold)"""
    center_cosine: Floats
    """(manifold, manifold)"""
    axis_cosine: Floats
    """(manifold, manifold), over the draws in which both axes are not zero"""
    center_axis_cosine: Floats
    """(centre's manifold, axis' manifold)"""
    center_inner: Floats
    axis_inner: Floats
    center_axis_inner: Floats
    """(manifold, manifold) absolute inner products, as the cosines"""
    labels: NDArray[np.generic]
    """(manifold)"""
    n_points: NDArray[np.int64]
    """(manifold)"""
    n_t: int
    nonunique_share: float
    """of draws in which lam is not the only solution: a point outside the support has u . (t - p) = 0 up to rounding
    and depends on the support, as all do where t is inside of the cone. Capacity is the same for all solutions;
    dimension, radius and alignments are those of the one that the solver takes."""
    support: float
    """mean number of points with a positive coefficient"""
    kkt: float
    """largest scaled residual of the projections"""
    dichotomies: str
    inactive: str
    center: bool
    reasons: dict[str, str]
    """why a number is missing, by name: a reason of `waterjar.run.schema.REASONS`"""
    note: str
    """the same in words"""


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
    >>> abs(found["capacity"] - 2) < 3 * found["capacity_se"]
    True
    """
    if inactive not in get_args(Inactive):
        raise unknown_name("inactive", inactive, get_args(Inactive))
    n_t = at_least("n_t", n_t, 2, "at least 2 draws are needed for a mean with an error")
    checked_rng(rng)
    of, dichotomy = manifolds(points, labels, center=center), dichotomies if isinstance(dichotomies, str) else "given"
    settings = {"n_t": n_t, "dichotomies": dichotomy, "inactive": inactive, "center": center}
    if not np.isfinite(of.norms).all():
        return cast("Geometry", _missing(of, "not_a_number", "the points have NaN or infinite values", settings))
    if of.count == 1:
        return cast("Geometry", _missing(of, "undefined", "there is one manifold only: nothing to separate", settings))
    y = draw_dichotomies(dichotomies, n_t, of.count, rng)
    pairs = dichotomy == "opposite_pairs"
    t = directions(n_t // 2 if pairs else n_t, of.units.shape[1], rng)
    t = np.repeat(t, 2, axis=0) if pairs else t
    found = project(of, t, y, nearest=inactive == "support", margin=True, anchors=True, workers=workers)
    return geometry_of(found, inactive=inactive, paired=pairs, settings=settings)


def geometry_of(found: Projections, *, inactive: Inactive, paired: bool, settings: dict[str, Any]) -> Geometry:
    """The measures of projections with their anchors. paired: draws 2k and 2k + 1 are not independent."""
    of = found.of
    if found.own.shape[1] == 0:
        raise WaterjarError("these projections have no anchors: they must be asked for, by project(..., anchors=True)")
    worst = float(found.residual.max())
    if not worst <= KKT_LIMIT:
        bad = int((~(found.residual <= KKT_LIMIT)).sum())
        largest = float((found.size / found.scale).max())
        note = (
            f"{bad} of {len(found.t)} projections have a KKT residual above {KKT_LIMIT:g}, up to {worst:.1e}: their "
            f"coefficients, up to {largest:.0e} |t|, cancel, and rounded to float64 they were not brought nearer"
        )
        return cast("Geometry", _missing(of, "undefined", note, settings))
    if not found.square.any():
        return cast("Geometry", _missing(of, "undefined", "no point is ever active: E|p|^2 is 0", settings))
    support, (own, mixed, center), to_center, along, active, draws = _products(found, inactive)
    used = active if inactive == "active_only" else np.ones(active.shape, np.bool_)
    table, solved = np.empty((len(own), kernel.COLUMNS)), np.zeros((len(own), 2, of.count))
    parts, sums = np.zeros((2, of.count)), np.zeros((kernel.LAYERS, of.count, of.count))
    kernel.measure_draws(own, mixed, center, along, used, draws, table, parts, solved, sums)
    shift = shifts(found, support, (own, mixed, center), to_center, used, draws, solved)
    result: dict[str, Any] = summary(found.square, (table, parts, sums), used, active, center, draws, shift, paired)
    n = len(found.t)
    result |= settings
    result.update(
        labels=of.names,
        n_points=of.sizes,
        nonunique_share=int((kinds(found) == ONE_OF_MANY).sum()) / n,
        support=int(found.count.sum()) / n,
        kkt=worst,
    )
    _scale_back(result, of.exponent)
    result["reasons"] = {name: "undefined" for name in SCALARS if math.isnan(result[name])}
    note = "a centre or all axes are zero, a mean has no draw, or b - c is rounding" if result["reasons"] else ""
    for name in SCALARS:
        if math.isnan(result[f"{name}_se"]) and name not in result["reasons"]:
            result["reasons"][f"{name}_se"] = "undefined"
            note = note or "one pair of draws alone has no standard error, nor has a radius of zero"
    result["note"] = note
    return cast("Geometry", result)


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
    if found.gram is not None:
        kernel.own_products(found.gram, count, members, weights, of.owner, own)
        return own
    for q, k in enumerate(count):  # too many points for all their products: those of one support after the other
        rows, one = members[q, :k], slice(q, q + 1)
        local = of.units[rows]
        kernel.own_products(local @ local.T, count[one], np.arange(k)[None], weights[one], of.owner[rows], own[one])
    return own


def _missing(of: Manifolds, reason: str, note: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A result of which nothing is known but what was asked."""
    numbers: dict[str, Any] = {name + end: math.nan for name in SCALARS for end in ("", "_se")}
    numbers |= {name: np.full(of.count, math.nan) for name in PER_MANIFOLD}
    numbers |= {name: np.full((of.count, of.count), math.nan) for name in PAIRS}
    told = {"labels": of.names, "n_points": of.sizes, "support": math.nan, "kkt": math.nan, "nonunique_share": math.nan}
    return numbers | settings | told | {"reasons": dict.fromkeys(SCALARS, reason), "note": note}
