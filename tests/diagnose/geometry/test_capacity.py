"""Separability against linear programming, Cover's theorem, and what the curve is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import binom

from diagnose.geometry.problems import case
from waterjar.diagnose.geometry import simulated_capacity
from waterjar.diagnose.geometry.capacity import Normals, critical_dimensions, rotated
from waterjar.diagnose.geometry.draws import dichotomies
from waterjar.diagnose.geometry.points import manifolds
from waterjar.diagnose.geometry.solver.separation import smallest_separable
from waterjar.errors import WaterjarError

Floats = NDArray[np.float64]


def feasible(signed: Floats) -> bool:
    """Whether w with signed w >= 1 exists, by HiGHS."""
    n, d = signed.shape
    scaled = signed / np.maximum(np.linalg.norm(signed, axis=1, keepdims=True), 1e-300)
    found = linprog(np.zeros(d), A_ub=-scaled, b_ub=-np.ones(n), bounds=(None, None), method="highs")
    assert found.status in (0, 2)
    return bool(found.status == 0)


def critical_of(z: Floats, y: Floats, labels: NDArray[np.int64], *, bias: bool = False, first: int = 3) -> int:
    """The smallest separable number of columns of z (point, dimension)."""
    of = manifolds(np.ones((len(labels), 1)), labels)
    found = np.empty(1, np.int64)
    table = np.ascontiguousarray(z[of.order].T)[None]
    smallest_separable(table, y[None], of.owner, of.offsets, bias, 0, first, found)
    return int(found[0])


def agree_with_highs(seeds: range) -> int:
    """At the critical dimension and one below, for random cases; the number of cases."""
    cases = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        manifolds_, bias = int(rng.integers(2, 12)), bool(seed % 3 == 0)
        labels = np.repeat(np.arange(manifolds_), rng.integers(1, 12, manifolds_))
        z = rng.standard_normal((manifolds_, 60))[labels] * rng.uniform(0, 2) + rng.standard_normal((len(labels), 60))
        if seed % 4 == 1:
            z = np.maximum(z, 0)
        if seed % 7 == 2:
            z[rng.integers(0, len(z), 3)] = z[0]  # duplicates, perhaps of another manifold
        y = rng.choice([-1.0, 1.0], manifolds_)
        n = critical_of(z, y, labels, bias=bias, first=int(rng.integers(1, 30)))
        for columns in (n - 1, n):
            if 1 <= columns <= 60:
                x = z[:, :columns]
                x = np.concatenate([x, np.ones((len(x), 1))], axis=1) if bias else x
                assert feasible(y[labels, None] * x) == (columns == n), (seed, columns, n)
                cases += 1
    return cases


def test_separability_is_feasibility() -> None:
    assert agree_with_highs(range(60)) > 80


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_separability_is_feasibility_in_two_thousand_cases(block: int) -> None:
    assert agree_with_highs(range(1000 + 200 * block, 1200 + 200 * block)) > 340


DEGENERATE = ["duplicates", "shared points", "rank one", "collapsed", "low dimensional", "dead units"]


@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_points_are_decided_as_highs_does(kind: str) -> None:
    for seed in range(8):
        problem = case(seed, kind=kind)
        if (np.linalg.norm(problem.points, axis=1) == 0).any():
            continue
        whole = problem.points.shape[1]
        n = critical_of(problem.points, problem.y[0], problem.labels)
        lengths = np.linalg.norm(problem.points[:, : min(n, whole)], axis=1)
        if lengths.min() == 0:  # the first columns of a point may be zero
            continue
        assert feasible(problem.signed[0]) == (n <= whole), seed


def test_cover() -> None:
    """P = 40 points in general position: p_20 = 1/2, and p_n is Cover's (1965) sum for every n."""
    points = np.random.default_rng(1).standard_normal((40, 45))
    found = simulated_capacity(points, np.arange(40), n_trials=2000)
    exact = binom.cdf(np.arange(45), 39, 0.5)  # 2^-(P-1) sum over k < n of (P - 1 choose k)
    assert np.abs(found["p_n"].value - exact).max() < 4 * math.sqrt(0.25 / 2000)
    assert float(found["n_star_low"]) < 20 < float(found["n_star_high"])
    assert abs(float(found["capacity"]) - 2) < 0.06
    assert (found["p_n_low"].value <= found["p_n"].value).all() and (
        found["p_n"].value <= found["p_n_high"].value
    ).all()
    assert float(found["capacity_low"]) < float(found["capacity"]) < float(found["capacity_high"])


def test_bias_is_worth_one_dimension() -> None:
    points = np.random.default_rng(2).standard_normal((20, 40))
    without, with_bias = (simulated_capacity(points, np.arange(20), n_trials=600, bias=b) for b in (False, True))
    assert abs(float(without["n_star"]) - float(with_bias["n_star"]) - 1) < 0.35


def test_agrees_with_the_anchors() -> None:
    from waterjar.diagnose.geometry import manifold_geometry

    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 8)
    points = rng.standard_normal((10, 120))[labels] + 0.7 * rng.standard_normal((80, 120))
    simulated = simulated_capacity(points, labels, n_trials=300)
    exact = manifold_geometry(points, labels, n_t=300)
    assert abs(float(simulated["capacity"]) / float(exact["capacity"]) - 1) < 0.08


def test_the_curve_by_hand() -> None:
    """Every trial by itself, at every n, without bisection and without rotation."""
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(3), 4)
    points = rng.standard_normal((12, 14))
    found = simulated_capacity(points, labels, n_trials=12, rng=5)
    of, y = manifolds(points, labels), dichotomies("uniform", 12, 3, 5)
    normals = Normals(5, 12).first(np.arange(12), 12)  # 12 points span 12 dimensions
    for trial in range(12):
        z = rotated(of) @ normals[trial].T
        separable = [feasible(y[trial, labels, None] * z[:, :n]) for n in range(1, 13)]
        assert separable == sorted(separable)
        assert found["critical"][trial] == 1 + separable.index(True)
    at = int(np.argmax(found["p_n"].value >= 0.5))
    expected = np.interp(0.5, [found["p_n"][at - 1], found["p_n"][at]], [at, at + 1])
    np.testing.assert_allclose(found["n_star"], expected)


def test_rotated_points_have_the_same_products() -> None:
    of = manifolds(np.random.default_rng(0).standard_normal((5, 30)), np.arange(5))
    short = rotated(of)
    assert short.shape == (5, 5)
    np.testing.assert_allclose(short @ short.T, of.units @ of.units.T, atol=1e-14)


def test_workers_blocks_and_trials_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((60, 30)), np.repeat(np.arange(6), 10)
    alone = simulated_capacity(points, labels, n_trials=30)["critical"]
    assert (simulated_capacity(points, labels, n_trials=30, workers=3)["critical"] == alone).all()
    assert (simulated_capacity(points, labels, n_trials=15)["critical"] == alone[:15]).all()
    monkeypatch.setattr("waterjar.diagnose.geometry.capacity._BLOCK", 1)
    assert (simulated_capacity(points, labels, n_trials=30)["critical"] == alone).all()
    assert (simulated_capacity(points, labels, n_trials=30, rng=1)["critical"] != alone).any()


def test_censored_trials() -> None:
    """Two manifolds around the origin: no hyperplane through it has all of their points on the right side."""
    points = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    found = simulated_capacity(points, [0, 0, 1, 1], n_trials=10)
    assert math.isnan(found["capacity"]) and found["capacity"].reason == "never_reached"
    assert float(found["censored_share"]) == 1 and (found["critical"] == 3).all() and (found["p_n"].value == 0).all()


def test_some_censored_trials_leave_a_result() -> None:
    """Opposite points of two manifolds are separable with opposite signs only."""
    y = np.array([[1, -1]] * 7 + [[1, 1]] * 3)
    found = simulated_capacity([[1.0, 0.2], [-1, -0.2]], [0, 1], n_trials=10, dichotomies=y)
    assert (
        float(found["censored_share"]) == 0.3
        and found["capacity"].reason == "present"
        and found["dichotomies"] == "given"
    )
    assert float(found["n_star"]) == pytest.approx(0.5 / 0.7)
    half = simulated_capacity([[1.0, 0.2], [-1, -0.2]], [0, 1], n_trials=6, dichotomies=y[4:])
    assert float(half["censored_share"]) == 0.5 and math.isnan(half["n_star"]) and "half" in half["capacity"].note


@pytest.mark.parametrize(
    ("points", "labels", "reason", "note"),
    [
        ([[1.0, np.nan], [0, 1]], [0, 1], "not_a_number", "NaN"),
        ([[1.0, 2], [0, 1]], [3, 3], "undefined", "one manifold"),
        ([[0.0, 0], [0, 1]], [0, 1], "never_reached", "a point is zero"),
    ],
)
def test_missing_with_its_reason(points: list[list[float]], labels: list[int], reason: str, note: str) -> None:
    found = simulated_capacity(points, labels, n_trials=4)
    assert math.isnan(found["capacity"]) and math.isnan(found["n_star"])
    assert found["capacity"].reason == reason and note in found["capacity"].note
    assert np.isnan(found["p_n"]).all() == (reason != "never_reached")


def test_a_zero_point_with_bias_is_a_point_like_others() -> None:
    found = simulated_capacity([[0.0, 0], [0, 1]], [0, 1], n_trials=20, bias=True)
    assert found["capacity"].reason == "present" and (found["critical"] == 1).all()


def test_the_length_of_points_counts_where_there_is_a_bias() -> None:
    found = simulated_capacity([[1.0], [2.0]], [0, 1], bias=True)
    assert found["p_n"].value.tolist() == [1.0]


def test_bias_is_feasibility_with_a_constant() -> None:
    """The whole of simulated_capacity against HiGHS on the points themselves, at the critical n and one below."""
    cases = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        count, dimension = int(rng.integers(2, 7)), int(rng.integers(4, 20))
        labels = np.repeat(np.arange(count), rng.integers(1, 7, count))
        points = rng.standard_normal((count, dimension))[labels] * 2 + rng.standard_normal((len(labels), dimension))
        points *= 10.0 ** rng.uniform(-1, 1, (len(labels), 1))
        points += 5 * rng.standard_normal(dimension)
        found = simulated_capacity(points, labels, n_trials=8, rng=seed, bias=True)
        of, y = manifolds(points, labels), dichotomies("uniform", 8, count, seed)
        flat = rotated(of, bias=True)
        # rotated() turns, shifts and scales: what it gives has the points' own distances, but for one factor.
        apart, own = (np.linalg.norm(x[:, None] - x, axis=2) for x in (flat, points[of.order]))
        np.testing.assert_allclose(apart * own.max(), own * apart.max(), atol=1e-9 * own.max() * apart.max())
        normals = Normals(seed, flat.shape[1]).first(np.arange(8), flat.shape[1])
        for trial, n in enumerate(found["critical"]):
            z = flat @ normals[trial].T
            for columns in (n - 1, n):
                if 1 <= columns <= flat.shape[1]:
                    x = np.concatenate([z[:, :columns], np.ones((len(z), 1))], axis=1)
                    assert feasible(y[trial, of.owner, None] * x) == (columns == n), (seed, trial, columns)
                    cases += 1
    assert cases > 300


def test_centre() -> None:
    points = np.random.default_rng(0).standard_normal((12, 9))
    labels = np.repeat(np.arange(3), 4)
    found = simulated_capacity(points + 5, labels, n_trials=40, center=True)
    expected = simulated_capacity(points - points.mean(axis=0), labels, n_trials=40)
    assert (found["critical"] == expected["critical"]).all() and found["center"]


def test_at_least_one_trial() -> None:
    with pytest.raises(WaterjarError, match="at least one"):
        simulated_capacity(np.eye(2), [0, 1], n_trials=0)
    assert critical_dimensions(manifolds(np.eye(2), [0, 1]), np.ones((1, 2)), 0).shape == (1,)
