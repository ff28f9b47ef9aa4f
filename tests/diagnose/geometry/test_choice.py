"""Where other anchors are as good: against vertices of the set of all solutions, found by linear programs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from diagnose.geometry.problems import KINDS, case
from waterjar.diagnose.geometry import Geometry, cone, manifold, manifold_geometry, manifolds
from waterjar.diagnose.geometry.choice import has_other_anchors
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.manifold import PAIRS
from waterjar.run.schema import REASONS

Floats = NDArray[np.float64]
LABELS = np.repeat(np.arange(4), 10)
OF_ANCHORS = [name for name in SCALARS if name != "capacity"]


def relu_points(seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.maximum(rng.standard_normal((4, 40))[LABELS] + rng.standard_normal((40, 40)), 0)


def parallel_points(apart: float = 0.0) -> Floats:
    """Every second point is a multiple of the one before it, up to rounding, or up to `apart`."""
    rng, points = np.random.default_rng(1), relu_points()
    points[1::2] = rng.uniform(0.5, 2, (20, 1)) * points[::2] + apart * rng.standard_normal((20, 40))
    return points


def pairs_of_points(apart: float) -> Floats:
    """Every second point is the one before it, up to `apart`."""
    points = relu_points()
    points[1::2] = points[::2] + apart * np.random.default_rng(1).standard_normal((20, 40))
    return points


def in_another_order(points: Floats, seed: int = 5, labels: NDArray[np.int64] = LABELS) -> Geometry:
    order = np.random.default_rng(seed).permutation(len(points))
    return manifold_geometry(points[order], labels[order])


def missing(found: Geometry) -> dict[str, str]:
    return {name: found[name].reason for name in SCALARS if found[name].is_missing}


def other_solutions(found: cone.Projections, q: int) -> list[tuple[Floats, NDArray[np.bool_]]]:
    """Anchors (manifold, dimension) and which there are, of solutions that opposite linear costs lead to."""
    of, rng = found.of, np.random.default_rng(q)
    rest = found.t[q] - found.points()[q]
    tight = np.flatnonzero((np.abs(of.units @ rest) <= 1e-9 * found.scale[q]) & (of.norms > 0))
    signed = found.y[q, of.owner[tight], None] * of.units[tight]
    anchors = []
    for cost in rng.standard_normal((4, len(tight))).repeat(2, axis=0) * np.tile([1, -1], 4)[:, None]:
        solved = linprog(
            cost, A_eq=signed.T, b_eq=found.points()[q], A_ub=np.ones((1, len(tight))),
            b_ub=[10 * found.size[q]], method="highs-ds",
        )  # fmt: skip
        assert solved.status == 0, solved.message
        lam = np.where(solved.x > 1e-7 * found.scale[q], solved.x / of.norms[tight], 0.0)
        total = np.array([lam[of.owner[tight] == m].sum() for m in range(of.count)])
        sums = np.array([(lam[:, None] * of.points[tight])[of.owner[tight] == m].sum(axis=0) for m in range(of.count)])
        anchors.append((sums / np.where(total > 0, total, 1.0)[:, None], total > 0))
    return anchors


@pytest.mark.parametrize("kind", [*(k for k in KINDS if "collapsed" not in k), "parallel", "square", "simplex"])
def test_it_is_so_where_linear_programs_find_other_anchors(kind: str) -> None:
    compared = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        if kind in KINDS:
            given = case(5 * seed + 1, draws=6, kind=kind)
            points, labels, t, y = given.points, given.labels, given.t, given.y
        else:
            points, labels = rng.standard_normal((8, 12 if kind == "square" else 6)), np.repeat([0, 1], 4)
            if kind == "parallel":
                points[1] = 3 * points[0]
            elif kind == "square":  # its corners are dependent, and what they have in common is one point
                points[3] = points[1] + points[2] - points[0]
            else:  # six independent points, of which two stand twice: t is often inside their cone
                points[[1, 5]] = points[[0, 4]]
            t, y = directions(12, points.shape[1], seed), dichotomies("uniform", 12, 2, seed)
            t[0] = (y[0, labels, None] * points)[:4].sum(axis=0)  # on the face of the first manifold
        found = cone.project(manifolds(points, labels), t, y, margin=True, anchors=True)
        told = has_other_anchors(found)
        for q in np.flatnonzero(found.size > 0):
            first, *others = other_solutions(found, int(q))
            same = [np.allclose(first[0], s, rtol=1e-4, atol=1e-4) and (first[1] == a).all() for s, a in others]
            assert told[q] == (not all(same)), (kind, seed, q)
            compared += 1
    assert compared >= 20


def test_the_order_of_samples_would_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer point in the same direction is as good: dimension changes by percents, though nothing else did."""
    points = parallel_points()
    monkeypatch.setattr(manifold, "FEW", 1.0)
    one, other = manifold_geometry(points, LABELS), in_another_order(points)
    np.testing.assert_allclose(one["capacity"], other["capacity"], rtol=1e-12)
    assert abs(float(one["dimension"]) / float(other["dimension"]) - 1) > 0.01
    assert abs(float(one["radius"]) / float(other["radius"]) - 1) > 0.001


@pytest.mark.parametrize("apart", [0.0, 1e-13, 1e-11])
def test_then_what_is_made_of_anchors_is_missing(apart: float) -> None:
    points = parallel_points(apart)
    found, other = manifold_geometry(points, LABELS), in_another_order(points)
    assert missing(found) == missing(other) == dict.fromkeys(OF_ANCHORS, "not_unique")
    for name in (*PAIRS, "manifold_dimension", "manifold_radius", "manifold_inactive_share"):
        assert np.isnan(found[name]).all() and (found[name].reason == REASONS.index("not_unique")).all(), name
    assert "other anchors are as good in 100 of 100 draws" in found["radius"].note
    assert float(found["nonunique_share"]) == 1 and float(found["inside_share"]) == 0
    np.testing.assert_allclose(found["capacity"], other["capacity"], rtol=1e-11)
    assert found["capacity"].standard_error > 0 and float(found["kkt"]) < 1e-9


def test_up_to_five_percent_of_the_draws_change_nothing() -> None:
    """Only one pair of points is parallel: how many draws it is active in is a matter of the draws."""
    points = relu_points()
    points[1] = 2 * points[0]
    shares = []
    for seed in range(12):
        found = manifold_geometry(points, LABELS, n_t=20, rng=seed, dichotomies="one_vs_rest")
        shares.append(float(found["nonunique_share"]))
        assert missing(found) == (dict.fromkeys(OF_ANCHORS, "not_unique") if shares[-1] > 0.05 else {})
    assert min(shares) <= 0.05 < max(shares)


@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-14, 1e-12, 1e-10])
def test_points_that_stand_twice_change_nothing(apart: float, inactive: manifold.Inactive) -> None:
    once = manifold_geometry(relu_points()[::2], LABELS[::2], inactive=inactive)
    twice = manifold_geometry(pairs_of_points(apart), LABELS, inactive=inactive)
    assert missing(once) == missing(twice) == {} and float(twice["nonunique_share"]) == 0
    for name in SCALARS:
        np.testing.assert_allclose(twice[name], once[name], rtol=1e-9, atol=1e-9, err_msg=name)
        errors = twice[name].standard_error, once[name].standard_error
        np.testing.assert_allclose(*errors, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("apart", [0.0, 1e-16, 1e-14, 1e-12])
def test_nor_do_they_inside_the_cone(apart: float) -> None:
    """Three independent points in three dimensions: some t are inside their cone, with one choice of anchors."""
    points, labels = np.random.default_rng(0).standard_normal((3, 3)), np.array([0, 0, 1])
    thrice = np.repeat(points, 3, axis=0)
    thrice += apart * np.random.default_rng(1).standard_normal(thrice.shape)
    alone, found = manifold_geometry(points, labels), manifold_geometry(thrice, np.repeat(labels, 3))
    assert missing(alone) == missing(found) == {}
    for name in SCALARS:
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_point_that_two_manifolds_share_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weight is the one's or the other's, or nobody's where their signs differ: with other names, other numbers."""
    points = relu_points()
    points[10] = points[0]
    found = manifold_geometry(points, LABELS)
    assert missing(found) == dict.fromkeys(OF_ANCHORS, "not_unique")
    monkeypatch.setattr(manifold, "FEW", 1.0)
    t, y = directions(100, 40, 0), dichotomies("uniform", 100, 4, 0)
    renamed = np.array([1, 0, 2, 3])
    dimensions = []
    for labels, signs in ((LABELS, y), (renamed[LABELS], y[:, renamed])):
        projected = cone.project(manifolds(points, labels), t, signs, anchors=True)
        dimensions.append(float(manifold.geometry_of(projected, inactive="zero", paired=False)["dimension"]))
    assert abs(dimensions[0] / dimensions[1] - 1) > 1e-3


def test_where_t_is_inside_the_cone_too_that_is_the_reason() -> None:
    points = np.random.default_rng(0).standard_normal((80, 6))
    points[1::2] = 2 * points[::2]
    found = manifold_geometry(points, np.repeat(np.arange(4), 20), n_t=60)
    assert set(missing(found).values()) == {"inside_cone"} and float(found["nonunique_share"]) == 1


def test_classes_that_collapsed_each_have_values() -> None:
    """Their points differ by rounding: all of them are one point."""
    centers = np.random.default_rng(3).standard_normal((4, 40))
    collapsed = centers[LABELS] + 1e-14 * np.random.default_rng(4).standard_normal((40, 40))
    once, found = manifold_geometry(centers, np.arange(4)), manifold_geometry(collapsed, LABELS)
    assert missing(found) == missing(once)
    np.testing.assert_allclose(found["inactive_share"], once["inactive_share"], rtol=1e-9)


def test_classes_that_collapsed_together() -> None:
    """Up to rounding all points are one; where not, they are solved with twice the digits, the same in any order."""
    rng, labels = np.random.default_rng(3), np.repeat(np.arange(4), 4)
    center, spread = rng.standard_normal(20), rng.standard_normal((16, 20))
    near, apart = (center + by * spread for by in (1e-12, 1e-8))
    assert missing(manifold_geometry(near, labels)) == dict.fromkeys(OF_ANCHORS, "not_unique")
    found, other = manifold_geometry(apart, labels), in_another_order(apart, labels=labels)
    assert missing(found) == missing(other) == {}
    for name in ("capacity", "dimension", "radius"):
        np.testing.assert_allclose(found[name], other[name], rtol=1e-8, err_msg=name)


def test_ordinary_features_have_no_other_anchors() -> None:
    found = manifold_geometry(relu_points(), LABELS)
    assert missing(found) == {} and float(found["nonunique_share"]) == 0


def test_a_support_that_rounding_made_dependent() -> None:
    """In layers of a few units the Gram matrix lets in a third point of a plane."""
    points = np.array([[0, 0, 0, 1.0], [0, 0, 1, 0], [0.01351815, 0, 0.99990863, 0], [0.83648839, 0, 0.54798465, 0]])
    points, beta = np.concatenate([points, [[0.6, 0, 0.8, 0]]]), np.array([1, 1e-3, 1, 1])
    of = manifolds(points, [0, 0, 1, 1, 1])
    found = cone.project(of, beta[None] @ of.units[:4], np.ones((1, 2)))
    found.count[0], found.members[0], found.beta[0] = 4, range(4), beta
    assert has_other_anchors(found).tolist() == [True]


def test_a_few_draws_with_other_anchors_are_told_beside_the_number() -> None:
    whole = manifold_geometry(relu_points(), LABELS)
    found = dataclasses.replace(whole, numbers={**whole.numbers, "nonunique_share": 0.03})
    assert found["radius"].note == "other anchors are as good in 3 of 100 draws"
    assert found["capacity"].note == whole["radius"].note == ""
