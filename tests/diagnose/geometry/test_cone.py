"""Projections on a cone against other solvers, and against the conditions that define them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from diagnose.geometry.problems import KINDS, Case, case, kkt, projected_exactly, unique
from waterjar.diagnose.geometry import cone
from waterjar.diagnose.geometry import points as points_module
from waterjar.diagnose.geometry.cone import project
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.points import manifolds
from waterjar.errors import WaterjarError


def solved(problem: Case, **options: object) -> cone.Projections:
    return project(manifolds(problem.points, problem.labels), problem.t, problem.y, **options)  # type: ignore[arg-type]


def same_as(problem: Case, theirs: np.ndarray, tolerance: float) -> None:
    """Compare p and |p|^2 always, lam and anchors only where they are unique."""
    found = solved(problem)
    lam, size = found.coefficients()[0], np.linalg.norm(problem.t[0])
    p = problem.signed[0].T @ theirs
    np.testing.assert_allclose(found.points()[0], p, rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(found.square[0], p @ p, rtol=0, atol=10 * tolerance * size**2)
    if unique(problem, lam[None])[0]:
        norms = np.linalg.norm(problem.points, axis=1)
        np.testing.assert_allclose(lam * norms, theirs * norms, rtol=0, atol=1e3 * tolerance * size)
        for label in np.unique(problem.labels):
            mine, other = lam * (problem.labels == label), theirs * (problem.labels == label)
            if (mine * norms).sum() > 1e-3 * size:
                anchors = [w @ problem.points / w.sum() for w in (mine, other)]
                np.testing.assert_allclose(*anchors, rtol=0, atol=1e3 * tolerance * np.abs(problem.points).max())


def against_scipy(problem: Case) -> None:
    # Coefficients of 1e5 and more that cancel: there scipy's own p is not better than this.
    tolerance = 1e-7 if problem.kind == "collapsed together" else 1e-9
    same_as(problem, nnls(problem.signed[0].T, problem.t[0])[0], tolerance)


def fine(problem: Case) -> None:
    """The conditions hold in the points' own space, and the residual that is told is true."""
    found = solved(problem)
    lam = found.coefficients()
    assert (lam >= 0).all()
    assert kkt(problem, lam).max() <= 1e-9
    assert found.residual.max() <= 1e-9
    np.testing.assert_allclose(found.square, (found.points() ** 2).sum(axis=1), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_kkt_and_scipy(kind: str) -> None:
    for seed in range(6):
        problem = case(seed, kind=kind)
        fine(problem)
        against_scipy(problem)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_thousand_problems_against_scipy(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        problem = case(seed)
        fine(problem)
        against_scipy(problem)


def against_interior(solve: Callable[[np.ndarray, np.ndarray], np.ndarray], least: int) -> None:
    """Against a solver of lam for (unit points, unit t) on 1,000 problems, as near as its own KKT residual lets it be.

    p is the nearest point: a residual of e moves it by no more than about sqrt(e sum lam).
    """
    compared = 0
    for seed in range(1000):
        problem = case(seed)
        signed = problem.signed[0][np.linalg.norm(problem.points, axis=1) > 0]
        if len(signed) == 0:  # all points are zero: nothing to ask the others
            assert solved(problem).square[0] == 0
            continue
        unit, size = signed / np.linalg.norm(signed, axis=1, keepdims=True), np.linalg.norm(problem.t[0])
        lam = np.maximum(solve(unit, problem.t[0] / size), 0)
        p = lam @ unit
        g = unit @ (problem.t[0] / size - p)
        residual = max(float(g.max()), float(np.abs(lam @ g)), 0.0) + 1e-15
        if residual < 1e-5:
            off = np.linalg.norm(solved(problem).points()[0] / size - p)
            assert off <= 3 * np.sqrt(residual * (1 + lam.sum())), (seed, problem.kind)
            compared += 1
    assert compared >= least


@pytest.mark.oracle
def test_thousand_problems_against_quadprog() -> None:
    """It needs a positive definite matrix: 1e-11 is added to the diagonal."""
    quadprog = pytest.importorskip("quadprog")

    def solve(unit: np.ndarray, t: np.ndarray) -> np.ndarray:
        n = len(unit)
        return np.asarray(quadprog.solve_qp(unit @ unit.T + 1e-11 * np.eye(n), unit @ t, np.eye(n), np.zeros(n))[0])

    against_interior(solve, 900)


@pytest.mark.oracle
def test_thousand_problems_against_cvxopt() -> None:
    cvxopt = pytest.importorskip("cvxopt")
    options = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}

    def solve(unit: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The nearest point to t in the polar cone is t - p; lam are its multipliers."""
        n, d = unit.shape
        given = [cvxopt.matrix(x) for x in (np.eye(d), -t, unit, np.zeros(n))]
        return np.asarray(cvxopt.solvers.qp(*given, options=options)["z"]).ravel()

    against_interior(solve, 900)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_seed(seed: int) -> None:
    fine(case(seed, draws=2))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-200, 1e200))
def test_scale_and_duplicates_change_nothing(seed: int, factor: float) -> None:
    problem = case(seed, kind="relu")
    points = np.concatenate([problem.points, problem.points[:3]]) * factor
    twice = Case("", points, np.concatenate([problem.labels, problem.labels[:3]]), problem.t, problem.y)
    size = np.linalg.norm(problem.t)
    np.testing.assert_allclose(solved(twice).points(), solved(problem).points(), rtol=0, atol=1e-11 * size)


def test_warm_start_gives_the_same_bits() -> None:
    compared = 0
    for seed in range(20):
        now = case(seed, draws=5, kind="relu")
        rng = np.random.default_rng(seed)
        before = Case("", now.points + 0.1 * rng.standard_normal(now.points.shape), now.labels, now.t, now.y)
        cold, warm = solved(now), solved(now, start=solved(before))
        alone = unique(now, cold.coefficients())
        assert (cold.coefficients() == warm.coefficients())[alone].all()
        assert (cold.square == warm.square)[alone].all()
        np.testing.assert_allclose(warm.points(), cold.points(), rtol=0, atol=1e-11 * np.linalg.norm(now.t))
        compared += alone.sum()
    assert compared > 40


@pytest.mark.parametrize("kind", ["duplicates", "shared points", "rank one", "collapsed", "zero rows"])
def test_warm_start_from_elsewhere_of_degenerate_points(kind: str) -> None:
    for seed in range(8):
        now = case(seed, draws=3, kind=kind)
        rng = np.random.default_rng(seed)
        before = Case("", rng.standard_normal(now.points.shape), now.labels, now.t, now.y)
        cold, warm = solved(now), solved(now, start=solved(before))
        size = np.linalg.norm(now.t, axis=1).max()
        np.testing.assert_allclose(warm.points(), cold.points(), rtol=0, atol=1e-9 * size)
        assert warm.residual.max() <= 1e-9


@pytest.mark.parametrize("gram_points", [8192, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_warm_is_cold_to_the_last_bit_also_where_solutions_are_many(
    kind: str, gram_points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points_module, "GRAM_POINTS", gram_points)
    for seed in range(60 if gram_points else 20):
        now = case(seed, draws=6, kind=kind)
        before = Case("", np.random.default_rng(seed).standard_normal(now.points.shape), now.labels, now.t, now.y)
        cold, warm = solved(now), solved(now, start=solved(before))
        np.testing.assert_array_equal(cold.coefficients(), warm.coefficients(), err_msg=str(seed))


def test_collapsed_float32_features_are_resolved() -> None:
    """What a network leaves when it collapses: 120 points of which 40 directions stand out of float32 rounding."""
    rng = np.random.default_rng(0)
    low = rng.standard_normal((120, 40)) * 10.0 ** -np.linspace(0, 5, 40) @ rng.standard_normal((40, 200))
    points = np.maximum(rng.standard_normal(200) * 3 + 0.1 * low, 0).astype(np.float32).astype(np.float64)
    problem = Case("", points, np.arange(120) % 3, rng.standard_normal((12, 200)), rng.choice([-1.0, 1.0], (12, 3)))
    found = solved(problem)
    assert (found.size > 1e4 * np.linalg.norm(problem.t, axis=1)).any()
    assert found.residual.max() <= 1e-9
    long = [x.astype(np.longdouble) for x in (problem.signed, problem.t, found.coefficients())]
    rest = long[1] - np.einsum("qn,qnd->qd", long[2], long[0])
    g = np.einsum("qnd,qd->qn", long[0], rest) / np.outer(
        np.linalg.norm(problem.t, axis=1), np.linalg.norm(points, axis=1)
    )
    assert np.where(long[2] > 0, np.abs(g), np.maximum(g, 0)).max() <= 1e-9


def test_any_number_of_workers_gives_the_same_bits() -> None:
    problem = case(3, draws=37, kind="relu")
    alone, together = solved(problem, nearest=True), solved(problem, nearest=True, workers=3)
    assert (alone.coefficients() == together.coefficients()).all()
    assert (alone.residual == together.residual).all()
    assert (alone.nearest == together.nearest).all()


@pytest.mark.parametrize("kind", KINDS)
def test_margins_leave_out_only_what_needs_no_second_look(kind: str) -> None:
    """With them, `kinds` tests few draws; without, all."""
    for seed in range(6):
        problem = case(seed, draws=20, kind=kind)
        known, unknown = solved(problem, margin=True), solved(problem)
        assert known.margin.shape == (20,) and unknown.margin.size == 0
        assert (known.coefficients() == unknown.coefficients()).all()
        np.testing.assert_array_equal(cone.kinds(known), cone.kinds(unknown))


def test_margin_is_the_distance_to_another_support() -> None:
    problem = case(3, draws=20, kind="relu")
    found = solved(problem, margin=True)
    beta = np.abs(found.weights())
    g = np.abs(found.products - found.points() @ found.of.units.T)
    expected = np.where(beta > 0, beta, g).min(axis=1)
    np.testing.assert_allclose(found.margin, expected, rtol=1e-9, atol=1e-12 * np.linalg.norm(problem.t))


def test_without_a_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_module, "GRAM_POINTS", 0)
    for seed in range(28):
        problem = case(seed)
        fine(problem)
        assert solved(problem).of.gram is None


def test_orthogonalised_points_resolve_what_a_gram_matrix_does_not() -> None:
    """Two manifolds 1e-5 apart: coefficients of 1e5 cancel, and the Gram matrix knows differences to 1e-16 only."""
    problem = case(9, kind="collapsed together")
    found = solved(problem)
    assert found.size[0] > 1e3 * np.linalg.norm(problem.t)
    assert kkt(problem, found.coefficients()).max() <= 1e-9


def cancelling(spread: float, draws: int = 30) -> Case:
    """Two manifolds so near to each other that coefficients of 1 / spread cancel."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal(12) + spread * rng.standard_normal((20, 12))
    t, y = rng.standard_normal((draws, 12)), np.tile([1.0, -1.0], (draws, 1))
    return Case("", points, np.repeat([0, 1], 10), t, y)


def test_a_residual_above_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """1e-8 apart, coefficients of 1e9 are rounded by more than the limit: the true residual and the told one agree."""
    monkeypatch.setattr(cone, "refine", lambda *_: None)
    problem = cancelling(1e-8)
    found = solved(problem)
    true = kkt(problem, found.coefficients())
    assert found.residual.max() > 1e-9
    assert (true <= 10 * found.residual).all()


def test_a_small_residual_of_huge_coefficients_is_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where refining has no end: |p|^2 is off by up to residual times sum |beta|, far more than the residual tells."""
    monkeypatch.setattr(cone, "refine", lambda *_: None)
    wrong = 0
    for spread in (1e-6, 1e-7, 1e-8, 1e-9):
        problem = cancelling(spread)
        found = solved(problem)
        taken = cone.is_solved(found)
        wrong += int(((found.residual <= cone.KKT_LIMIT) & ~taken).sum())
        lam = found.coefficients()
        for q in np.flatnonzero(taken):
            exact = projected_exactly(problem.signed[q], problem.t[q], np.flatnonzero(lam[q]))
            assert found.square[q] == pytest.approx(exact.p @ exact.p, abs=2 * cone.GAP_LIMIT * found.scale[q] ** 2)
    assert wrong


@pytest.mark.parametrize("spread", [1e-6, 1e-7, 1e-8, 1e-9])
def test_coefficients_that_cancel_are_found_in_exact_arithmetic(spread: float) -> None:
    """Rational numbers prove the support: its coefficients are positive, and no point would gain. p is compared."""
    problem = cancelling(spread)
    found = solved(problem, nearest=True)
    assert found.residual.max() <= 1e-9 and found.size.max() > 0.1 / spread
    lam, p = found.coefficients(), found.points()
    for q in range(len(problem.t)):
        support = np.flatnonzero(lam[q])
        exact = projected_exactly(problem.signed[q], problem.t[q], support)
        np.testing.assert_allclose(lam[q, support], exact.lam, rtol=1e-6)
        np.testing.assert_allclose(p[q], exact.p, rtol=0, atol=1e-8 * np.linalg.norm(problem.t[q]))
        assert found.square[q] == pytest.approx(exact.p @ exact.p, abs=1e-7 * found.scale[q] ** 2)
        if found.refined.size and not np.isnan(found.refined[q, 0]):
            assert min(exact.lam) > 0 and exact.gain <= 0
            np.testing.assert_allclose(lam[q, support], exact.lam, rtol=1e-12)
            np.testing.assert_allclose(p[q], exact.p, rtol=0, atol=1e-14 * np.linalg.norm(problem.t[q]))
            rest = problem.t[q] - exact.p
            for m in range(2):
                own = found.of.order[found.of.owner == m]
                best = own[np.argmax(problem.signed[q, own] @ rest)]
                if not lam[q, own].any():
                    assert found.of.order[found.nearest[q, m]] == best
    again = cone.project(found.of, problem.t, problem.y, start=found)
    np.testing.assert_array_equal(again.points(), p)
    np.testing.assert_array_equal(again.coefficients(), lam)


def test_nearest_point_of_an_inactive_manifold() -> None:
    problem = case(4, draws=20, kind="relu")
    found = solved(problem, nearest=True)
    rest = problem.t - found.points()
    names = np.unique(problem.labels)
    gain = np.einsum("qnd,qd->qn", problem.signed, rest)
    for q in range(20):
        for m, name in enumerate(names):
            of = np.flatnonzero(problem.labels == name)
            mine = found.of.order[found.nearest[q, m]]
            assert problem.labels[mine] == name
            assert gain[q, mine] >= gain[q, of].max() - 1e-12 * np.linalg.norm(problem.t[q])


def test_zero_t() -> None:
    problem = case(0, kind="relu")
    found = project(manifolds(problem.points, problem.labels), 0 * problem.t, problem.y)
    assert (found.count == 0).all() and (found.square == 0).all() and (found.residual == 0).all()


def test_input_is_left_alone() -> None:
    problem = case(2, kind="relu")
    kept = problem.points.copy(), problem.t.copy(), problem.y.copy()
    solved(problem)
    manifolds(problem.points, problem.labels, center=True)
    assert all((a == b).all() for a, b in zip(kept, (problem.points, problem.t, problem.y), strict=True))


def test_points_of_any_length_become_unit_vectors() -> None:
    points = np.array([[3e-300, 4e-300], [3e300, 4e300], [0, 0], [3, 4]])
    of = manifolds(points, ["b", "a", "a", "b"])
    np.testing.assert_allclose(of.units, [[0.6, 0.8], [0, 0], [0.6, 0.8], [0.6, 0.8]])
    np.testing.assert_allclose(np.ldexp(of.norms, of.exponent)[[0, 1]], [5e300, 0])
    assert 0 < of.norms[2] < 1e-100 and 0 < of.norms[3] < 1e-100  # beside 5e300, both are as good as nothing
    assert of.names.tolist() == ["a", "b"] and of.sizes.tolist() == [2, 2] and of.order.tolist() == [1, 2, 0, 3]


def test_centred_points() -> None:
    of = manifolds([[1.0, 0], [3.0, 0]], [0, 1], center=True)
    np.testing.assert_allclose(of.units * of.norms[:, None], [[-1, 0], [1, 0]])


def test_wrong_shapes_are_said() -> None:
    of = manifolds(np.eye(3), [0, 1, 2])
    with pytest.raises(WaterjarError, match="must be .point, dimension. and .point"):
        manifolds(np.eye(3), [0, 1])
    with pytest.raises(WaterjarError, match="empty"):
        manifolds(np.empty((0, 3)), [])
    with pytest.raises(WaterjarError, match=r"\(draw, 3\) and \(draw, 3\)"):
        project(of, np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(WaterjarError, match="at least one"):
        project(of, np.ones((1, 3)), np.ones((1, 3)), workers=0)
    start = project(of, np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(WaterjarError, match="workers=2.0: it must be a whole number"):
        project(of, np.ones((1, 3)), np.ones((1, 3)), workers=2.0)  # type: ignore[arg-type]
    for length in (np.nan, np.inf, 1e160, 1e-44, 1e-200):
        with pytest.raises(WaterjarError, match=r"lengths are not between 1e-30 and 1e\+30"):
            project(of, np.array([[1.0, 0, 0], [length, 0, 0]]), np.ones((2, 3)))
    with pytest.raises(WaterjarError, match="same draws and points"):
        project(of, np.ones((2, 3)), np.ones((2, 3)), start=start)


@pytest.mark.parametrize(("classes", "size", "units", "falling"), [(2, 10, 14, 1.1), (3, 8, 20, 0.75)])
def test_what_is_solved_does_not_depend_on_the_order_of_samples_and_classes(
    classes: int, size: int, units: int, falling: float
) -> None:
    """Directions fall to 1e-14 of the first, and some draws have no solution: which ones hung on the order.

    Which data have such draws depends on the last bits of BLAS: one of several does.
    """
    unsolved = 0
    for seed in range(4):
        rng, labels = np.random.default_rng(seed), np.repeat(np.arange(classes), size)
        spread = rng.standard_normal((len(labels), units)) * 10.0 ** (-falling * np.arange(units))
        axes = np.linalg.qr(rng.standard_normal((units, units)))[0]
        points = spread @ axes
        t, y = directions(20, units, seed), dichotomies("uniform", 20, classes, seed)
        first = project(manifolds(points, labels), t, y, nearest=True, anchors=True)
        unsolved += int((~cone.is_solved(first)).sum())
        order, renamed = rng.permutation(len(labels)), np.roll(np.arange(classes), seed)
        signs = np.empty_like(y)
        signs[:, renamed] = y
        found = project(manifolds(points[order], renamed[labels][order]), t, signs, nearest=True, anchors=True)
        hard = found.size > 1e3 * found.scale
        assert hard.sum() > 10
        np.testing.assert_array_equal(found.residual[hard], first.residual[hard])
        np.testing.assert_array_equal(found.square[hard], first.square[hard])
        np.testing.assert_array_equal(found.coefficients()[hard], first.coefficients()[hard][:, order])
        np.testing.assert_array_equal(found.active[hard][:, renamed], first.active[hard])
        np.testing.assert_array_equal(found.own[hard][:, renamed][:, :, renamed], first.own[hard])
        nearest = found.of.order[found.nearest][hard][:, renamed]
        np.testing.assert_array_equal(order[nearest], first.of.order[first.nearest][hard])
    assert unsolved


def test_dead_units_change_no_bit_of_what_is_solved_by_rows() -> None:
    rng = np.random.default_rng(0)
    points = np.maximum(rng.standard_normal((24, 10)), 0)
    points[:, rng.permutation(10)[:4]] = 0
    of, t, y = manifolds(points, np.repeat([0, 1], 12)), directions(20, 10, 0), dichotomies("uniform", 20, 2, 0)
    assert of.nonzero.shape == (24, 6) and of.alive.sum() == 6
    scale, products = np.linalg.norm(t, axis=1), t @ of.units.T
    whole = cone._unfilled(of, t, y, scale, products, False, False, False)
    full = cone._solved(whole, cone.ROWS, None, 1)
    other = manifolds(points, np.repeat([0, 1], 12))
    vars(other).update(alive=np.ones(10, bool), nonzero=other.units)  # as if none were dead
    wide = cone._solved(cone._unfilled(other, t, y, scale, products, False, False, False), cone.ROWS, None, 1)
    for name in ("count", "square", "size", "residual"):
        np.testing.assert_array_equal(getattr(full, name), getattr(wide, name))
    np.testing.assert_array_equal(full.coefficients(), wide.coefficients())
