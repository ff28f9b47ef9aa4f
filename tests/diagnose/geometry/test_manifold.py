"""Known answers, an independent implementation, invariances, and what is missing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from diagnose.geometry.problems import KINDS, Case, case, unique
from waterjar.diagnose.geometry import cone, manifold, manifold_geometry
from waterjar.diagnose.geometry import points as points_module
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.manifold import PAIRS, Geometry, geometry_of
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

Floats = NDArray[np.float64]


def relu_points(seed: int = 1, manifolds: int = 5, size: int = 12, dimension: int = 40) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(manifolds), size)
    centers = rng.standard_normal((manifolds, dimension))
    return np.maximum(centers[labels] + rng.standard_normal((len(labels), dimension)), 0), labels


def by_the_book(points: Floats, labels: Floats, t: Floats, y: Floats, inactive: str) -> dict[str, object]:
    """The definitions, anchors written out in the points' space: scipy's nnls and numpy's pinv."""
    names, n = np.unique(labels), len(t)
    manifolds = len(names)
    anchors, active = np.zeros((n, manifolds, points.shape[1])), np.zeros((n, manifolds), bool)
    a, b, c = np.zeros((3, n))
    terms = np.zeros((2, n, manifolds))
    for q in range(n):
        signed = points * y[q, np.searchsorted(names, labels), None]
        lam = nnls(signed.T, t[q])[0]
        p = signed.T @ lam
        a[q] = p @ p
        for m, name in enumerate(names):
            weights = lam * (labels == name)
            if weights.sum() > 0:
                anchors[q, m], active[q, m] = weights @ points / weights.sum(), True
            elif inactive == "support":
                own = points[labels == name]
                anchors[q, m] = own[np.argmax(y[q, m] * own @ (t[q] - p))]
    used = active if inactive == "active_only" else np.ones_like(active)
    s0 = anchors.sum(axis=0) / used.sum(axis=0)[:, None]
    axes, crosses, axes_inner, crosses_inner = [], [], [], []
    for q in range(n):
        rows = np.flatnonzero(used[q])
        s1, center = anchors[q, rows] - s0[rows], s0[rows]
        v = s1 @ t[q]
        for k, matrix in enumerate((s1 @ s1.T, s1 @ s1.T + center @ center.T)):
            terms[k, q, rows] = v * (np.linalg.pinv(matrix, rcond=1e-10, hermitian=True) @ v)
        b[q], c[q] = terms[:, q].sum(axis=1)
        off = ~np.eye(len(rows), dtype=bool)
        if off.any():
            with np.errstate(invalid="ignore"):
                unit, unit_center = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (s1, center))
            axes.append((unit @ unit.T)[off].mean())
            crosses.append((unit_center @ unit.T)[off].mean())
            axes_inner.append(np.abs(s1 @ s1.T)[off].mean())
            crosses_inner.append(np.abs(center @ s1.T)[off].mean())
    off = ~np.eye(manifolds, dtype=bool)
    with np.errstate(invalid="ignore"):
        unit = s0 / np.linalg.norm(s0, axis=1, keepdims=True)
    b_m, c_m = terms.sum(axis=1) / used.sum(axis=0)
    ratio = np.divide(c_m, b_m - c_m, out=np.full(manifolds, np.nan), where=b_m != c_m)
    radius = np.sqrt(c.mean() / (b - c).mean())
    dimension = b.sum() / used.sum()
    return {
        "capacity": manifolds / a.mean(),
        "capacity_approx": (1 + radius**-2) / dimension,
        "dimension": dimension,
        "radius": radius,
        "utility": c.mean() / a.mean(),
        "center_alignment": (unit @ unit.T)[off].mean(),
        "axis_alignment": np.mean(axes),
        "center_axis_alignment": np.mean(crosses),
        "center_alignment_inner": np.abs(s0 @ s0.T)[off].mean(),
        "axis_alignment_inner": np.mean(axes_inner),
        "center_axis_alignment_inner": np.mean(crosses_inner),
        "inactive_share": 1 - active.mean(),
        "manifold_dimension": b_m,
        "manifold_radius": np.sqrt(np.maximum(ratio, 0)),
        "manifold_inactive_share": 1 - active.mean(axis=0),
    }


@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
@pytest.mark.parametrize("manifolds", [2, 5])
def test_by_the_book(inactive: str, manifolds: int) -> None:
    points, labels = relu_points(manifolds=manifolds)
    expected = by_the_book(points, labels, directions(60, 40, 3), dichotomies("uniform", 60, manifolds, 3), inactive)
    found = manifold_geometry(points, labels, n_t=60, rng=3, inactive=inactive)  # type: ignore[arg-type]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    assert reasons(found) == {} and {found[name].note for name in SCALARS} == {""}


def measured(points: Floats, labels: Floats, t: Floats, y: Floats, inactive: str = "zero") -> Geometry:
    found = cone.project(points_module.manifolds(points, labels), t, y, nearest=True, anchors=True)
    return geometry_of(found, inactive=inactive, paired=False)  # type: ignore[arg-type]


def reasons(found: Geometry) -> dict[str, str]:
    """Why numbers are missing, by name."""
    return {name: found[name].reason for name in SCALARS if found[name].is_missing}


def test_projections_without_anchors_are_refused() -> None:
    points, labels = relu_points()
    found = cone.project(points_module.manifolds(points, labels), directions(5, 40, 0), dichotomies("uniform", 5, 5, 0))
    with pytest.raises(WaterjarError, match="anchors=True"):
        geometry_of(found, inactive="zero", paired=False)


@pytest.mark.parametrize("inactive", ["zero", "support"])
def test_singular_matrices_by_the_book(inactive: str) -> None:
    """More manifolds than dimensions: S1 S1' has no inverse. (Of the draws, those whose anchors are unique.)"""
    points, labels = relu_points(manifolds=9, size=4, dimension=6)
    t, y = directions(300, 6, 0), np.ones((300, 9))
    lam = cone.project(points_module.manifolds(points, labels), t, y).coefficients()
    kept = unique(Case("", points, labels, t, y), lam)
    assert kept.sum() > 100
    expected = by_the_book(points, labels, t[kept], y[kept], inactive)
    found = measured(points, labels, t[kept], y[kept], inactive)
    for name in ("capacity", "dimension", "radius", "utility"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-7, err_msg=name)


def test_means_over_pairs_are_the_scalars() -> None:
    found = manifold_geometry(*relu_points(), n_t=50)
    off = ~np.eye(5, dtype=bool)
    for name in PAIRS:
        matrix = found[name]
        assert np.isnan(np.diag(matrix)).all()
        kind = name.replace("_cosine", "_alignment").replace("_inner", "_alignment_inner")
        np.testing.assert_allclose(matrix[off].mean(), found[kind], rtol=1e-12)
    np.testing.assert_allclose(found["manifold_dimension"].value.mean(), float(found["dimension"]), rtol=1e-12)


def test_capacity_is_the_product_of_its_factors() -> None:
    found = manifold_geometry(*relu_points(), n_t=50)
    product = float(found["utility"]) * (1 + float(found["radius"]) ** -2) / float(found["dimension"])
    np.testing.assert_allclose(found["capacity"], product, rtol=1e-12)
    np.testing.assert_allclose(found["capacity_approx"], product / float(found["utility"]), rtol=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_single_points_have_capacity_two(correlation: float) -> None:
    """M = 1, P <= N independent points, uniform y, any correlation: E|p|^2 = P / 2."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((8, 20)) * np.sqrt(1 - correlation) + np.sqrt(correlation) * rng.standard_normal(20)
    found = manifold_geometry(points, np.arange(8), n_t=4000)
    assert abs(float(found["capacity"]) - 2) < 4 * found["capacity"].standard_error < 0.12


def spheres(dimension: int, size: int, manifolds: int = 3) -> tuple[Floats, Floats]:
    """Centres of norm 1 and spheres of radius 1 around them, all in subspaces of their own."""
    rng = np.random.default_rng(dimension)
    points = np.zeros((manifolds, size, manifolds, dimension + 1))
    for m in range(manifolds):
        points[m, :, m, 0] = 1
        around = rng.standard_normal((size, dimension))
        around = np.array([[-1.0], [1.0]]) if dimension == 1 else around
        points[m, :, m, 1:] = around / np.linalg.norm(around, axis=1, keepdims=True)
    return points.reshape(manifolds * size, -1), np.repeat(np.arange(manifolds), size)


def test_orthogonal_spheres_of_one_dimension() -> None:
    """Two points each: 2 / (D + 1) = 1, exact."""
    found = manifold_geometry(*spheres(1, 2), n_t=4000)
    assert abs(float(found["capacity"]) - 1) < 4 * found["capacity"].standard_error < 0.08


def test_orthogonal_spheres_are_approached_from_above() -> None:
    """D = 3: 1/2, from above as the number of points grows."""
    found = [manifold_geometry(*spheres(3, size), n_t=1500) for size in (20, 100, 600)]
    capacities = [float(f["capacity"]) for f in found]
    assert capacities[0] > capacities[1] > capacities[2]
    assert (
        -4 * found[2]["capacity"].standard_error < capacities[2] - 0.5 < 0.05 + 4 * found[2]["capacity"].standard_error
    )


def test_scale_rotation_order_and_duplicates_change_nothing() -> None:
    points, labels = relu_points()
    t, y = directions(60, 40, 0), dichotomies("uniform", 60, 5, 0)
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    order, classes = rng.permutation(60), rng.permutation(5)
    again = np.concatenate([np.arange(60), rng.integers(0, 60, 9)])
    changed = {
        "scaled": (points * 1e-3, labels, t, y),
        "rotated": (points @ turn, labels, t @ turn, y),
        "permuted": (points[order], labels[order], t, y),
        "renamed": (points, classes[labels], t, y[:, np.argsort(classes)]),
        "duplicated": (points[again], labels[again], t, y),
    }
    expected = measured(points, labels, t, y)
    for what, given in changed.items():
        found = measured(*given)
        for name in ("capacity", "dimension", "radius", "utility", "axis_alignment"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=f"{what}: {name}")


def test_centre_is_removed() -> None:
    points, labels = relu_points()
    found = manifold_geometry(points + 7, labels, n_t=30, center=True)
    expected = manifold_geometry(points - points.mean(axis=0), labels, n_t=30)
    np.testing.assert_allclose(found["capacity"], float(expected["capacity"]), rtol=1e-9)
    assert found.center and not expected.center


def test_opposite_pairs_share_t_and_vary_less() -> None:
    points = np.random.default_rng(0).standard_normal((8, 20))
    free = manifold_geometry(points, np.arange(8), n_t=4000)
    pairs = manifold_geometry(points, np.arange(8), n_t=4000, dichotomies="opposite_pairs")
    assert abs(float(pairs["capacity"]) - 2) < 4 * pairs["capacity"].standard_error
    # Of P orthogonal points, |p|^2 has the variance 5P/4, and the mean over a pair P/2 in the place of 5P/8.
    assert 0.85 < pairs["capacity"].standard_error / free["capacity"].standard_error < 0.97


@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
@pytest.mark.parametrize(("manifolds", "size", "dimension", "n_t"), [(3, 6, 15, 100), (2, 20, 20, 100), (8, 6, 30, 50)])
def test_standard_errors_are_those_of_repetitions(
    inactive: str, manifolds: int, size: int, dimension: int, n_t: int
) -> None:
    """S0 comes from the same draws: without what a draw does to it, radius and alignments are off by 1.2 to 2.5."""
    points, labels = relu_points(manifolds=manifolds, size=size, dimension=dimension)
    repeats = [
        manifold_geometry(points, labels, n_t=n_t, rng=seed, inactive=inactive)  # type: ignore[arg-type]
        for seed in range(200)
    ]
    for name in SCALARS:
        spread = np.std([r[name] for r in repeats], ddof=1)
        told = np.mean([r[name].standard_error for r in repeats])
        assert 0.8 < spread / told < 1.25, (name, spread / told)


def test_workers_and_seeds() -> None:
    points, labels = relu_points()
    alone, together = (manifold_geometry(points, labels, n_t=20, workers=w) for w in (1, 3))
    for name in (*SCALARS, *PAIRS):
        np.testing.assert_array_equal(alone[name], together[name])
    assert float(manifold_geometry(points, labels, n_t=20, rng=1)["capacity"]) != float(alone["capacity"])


def test_without_a_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = relu_points()
    expected = manifold_geometry(points, labels, n_t=20, inactive="support")
    monkeypatch.setattr(points_module, "GRAM_POINTS", 0)
    found = manifold_geometry(points, labels, n_t=20, inactive="support")
    for name in SCALARS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
def test_degenerate_is_finite_or_has_a_reason(kind: str, inactive: str) -> None:
    for seed in range(3):
        problem = case(seed, kind=kind)
        found = manifold_geometry(problem.points, problem.labels, n_t=12, inactive=inactive)  # type: ignore[arg-type]
        assert not float(found["kkt"]) > 1e-9
        for name in SCALARS:
            value = found[name]
            assert np.isfinite(value) or name in reasons(found), (seed, name)


@pytest.mark.parametrize(
    ("points", "labels", "reason", "note"),
    [
        ([[1.0, np.nan], [0, 1]], [0, 1], "not_a_number", "NaN"),
        ([[1.0, np.inf], [0, 1]], [0, 1], "not_a_number", "infinite"),
        ([[1.0, 2], [0, 1]], [3, 3], "undefined", "one manifold"),
        ([[0.0, 0], [0, 0]], [0, 1], "undefined", "never active|ever active"),
    ],
)
def test_missing_with_its_reason(points: list[list[float]], labels: list[int], reason: str, note: str) -> None:
    found = manifold_geometry(points, labels, n_t=4)
    assert all(np.isnan(found[name]) for name in SCALARS)
    assert reasons(found) == dict.fromkeys(SCALARS, reason)
    assert re.search(note, found["capacity"].note)


def collapsed(spread: float = 1e-7) -> tuple[Floats, Floats]:
    """Two classes that differ by so little that coefficients of 1 / spread cancel."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(12) + spread * rng.standard_normal((20, 12)), np.repeat([0, 1], 10)


class TestUnsolvedDraws:
    """Draws that the solver cannot bring to a KKT residual of 1e-9."""

    @staticmethod
    def projected(unsolved: list[int], dichotomy: str = "uniform") -> cone.Projections:
        pairs = dichotomy == "opposite_pairs"
        t = np.repeat(directions(50, 40, 0), 2, axis=0) if pairs else directions(100, 40, 0)
        y = dichotomies(dichotomy, 100, 5, 0)  # type: ignore[arg-type]
        found = cone.project(points_module.manifolds(*relu_points()), t, y, anchors=True)
        found.residual[unsolved] = 1.7e-9
        return found

    def test_a_few_are_left_out_draws_and_counted(self) -> None:
        usual = self.projected([3, 10, 99])
        found = geometry_of(usual, inactive="zero", paired=False)
        rest = usual.only(np.setdiff1d(np.arange(100), [3, 10, 99]))
        expected = geometry_of(rest, inactive="zero", paired=False)
        for name in (*SCALARS, *PAIRS, "manifold_dimension", "nonunique_share", "support", "kkt"):
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
        assert float(found["left_out_draws"]) == 3 and found["radius"].n == 97 and expected["radius"].n == 97
        assert found["capacity"].note == "3 of 100 draws could not be solved, and are left out"
        assert found["manifold_dimension"].note == found["capacity"].note and expected["capacity"].note == ""
        assert found["capacity"].standard_error == expected["capacity"].standard_error

    def test_of_a_pair_both_are(self) -> None:
        usual = self.projected([3, 10], "opposite_pairs")
        found = geometry_of(usual, inactive="zero", paired=True)
        rest = usual.only(np.setdiff1d(np.arange(100), [2, 3, 10, 11]))
        expected = geometry_of(rest, inactive="zero", paired=True)
        assert float(found["left_out_draws"]) == 4 and float(found["radius"]) == float(expected["radius"])
        assert found["radius"].standard_error == expected["radius"].standard_error

    def test_above_five_percent_nothing_is_told_but_the_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert reasons(geometry_of(self.projected([*range(5)]), inactive="zero", paired=False)) == {}
        found = geometry_of(self.projected([*range(6)]), inactive="zero", paired=False)
        assert reasons(found) == dict.fromkeys(SCALARS, "unsolved")
        assert "6 of 100 projections have a KKT residual above 1e-09 (up to 1.7e-09)" in found["capacity"].note
        monkeypatch.setattr(cone, "refine", lambda *_: None)
        assert set(reasons(manifold_geometry(*collapsed(3e-8))).values()) == {"unsolved"}


def test_coefficients_that_cancel_leave_no_draw_out() -> None:
    """In float64 alone a third of the draws has a residual above 1e-9, and nothing could be told."""
    found = manifold_geometry(*collapsed(3e-8))
    assert reasons(found) == {} and float(found["left_out_draws"]) == 0 and float(found["kkt"]) < 1e-9


class TestInsideTheCone:
    """Where t is inside the cone, many anchors are as good: what is made of them is missing, capacity is not."""

    DRAWS = (directions(60, 6, 3), dichotomies("uniform", 60, 4, 3))

    @staticmethod
    def everywhere(twice: bool = False) -> tuple[Floats, Floats]:
        """So many points around the origin that their cone is everything."""
        rng = np.random.default_rng(0)
        points, labels = rng.standard_normal((80, 6)), np.repeat(np.arange(4), 20)
        return (np.tile(points, (2, 1)), np.tile(labels, 2)) if twice else (points, labels)

    def test_capacity_stays_and_what_is_made_of_anchors_goes(self) -> None:
        points, labels = self.everywhere()
        found = manifold_geometry(points, labels, n_t=60, rng=3)
        expected = by_the_book(points, labels, *self.DRAWS, "zero")
        np.testing.assert_allclose(found["capacity"], expected["capacity"], rtol=1e-12)
        assert float(found["capacity"]) == pytest.approx(4 / (self.DRAWS[0] ** 2).sum(axis=1).mean(), rel=1e-12)
        assert reasons(found) == dict.fromkeys([name for name in SCALARS if name != "capacity"], "inside_cone")
        for name in (*PAIRS, "manifold_dimension", "manifold_radius", "manifold_inactive_share"):
            assert np.isnan(found[name]).all() and (found[name].reason == REASONS.index("inside_cone")).all(), name
        assert "60 of 60 draws" in found["dimension"].note and np.isnan(found["dimension"].standard_error)
        assert float(found["inside_share"]) == 1 and float(found["kkt"]) < 1e-12 and float(found["support"]) == 6
        assert found["capacity"].standard_error > 0 and found["capacity"].note == ""

    def test_because_solvers_choose_differently(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same projections with scipy's anchors: dimension 1.30 and not 1.38, radius 2.25 and not 5.05."""
        monkeypatch.setattr(manifold, "FEW", 1.0)
        points, labels = self.everywhere()
        ours, scipys = (
            manifold_geometry(points, labels, n_t=60, rng=3),
            by_the_book(points, labels, *self.DRAWS, "zero"),
        )
        for name in ("dimension", "radius", "center_alignment", "inactive_share"):
            assert abs(float(ours[name]) / scipys[name] - 1) > 0.01, name  # type: ignore[operator]

    @pytest.mark.parametrize("turned", [False, True])
    def test_dead_units_hide_it_from_nobody(self, turned: bool) -> None:
        """Then t is never in the span of the points; the part of it that is counts."""
        points, labels = self.everywhere()
        points = np.pad(points, ((0, 0), (0, 30)))
        if turned:
            points = points @ np.linalg.qr(np.random.default_rng(1).standard_normal((36, 36)))[0]
        found = manifold_geometry(points, labels, n_t=60)
        assert reasons(found)["radius"] == "inside_cone" and np.isfinite(found["capacity"])

    def test_up_to_five_percent_of_the_draws_change_nothing(self) -> None:
        points, labels = self.everywhere()
        outside, few = relu_points(manifolds=4, size=3, dimension=40), 0.05
        t, y = directions(200, 6, 3), dichotomies("uniform", 200, 4, 3)
        first = points[::5] + 2.5 * np.eye(6)[0]  # most directions are outside of this cone, if all signs are +
        y = np.where(np.arange(200)[:, None] < 100, y, 1.0)
        shares = []
        for n in range(90, 200, 10):
            projected = cone.project(
                points_module.manifolds(first, labels[::5]), t[n : n + 40], y[n : n + 40], anchors=True
            )
            found = geometry_of(projected, inactive="zero", paired=False)
            shares.append(float(found["inside_share"]))
            assert ("dimension" in reasons(found)) == (shares[-1] > few)
            gone = np.linalg.norm(projected.t - projected.points(), axis=1) <= 1e-9 * np.linalg.norm(
                projected.t, axis=1
            )
            assert shares[-1] == pytest.approx(gone.mean())
        assert min(shares) <= few < max(shares)
        assert float(manifold_geometry(*outside, n_t=50)["inside_share"]) == 0

    def test_points_that_stand_twice_alone_change_nothing(self) -> None:
        """The cone of independent points holds some t, and there is one choice: also where each point stands thrice."""
        points, labels = np.random.default_rng(0).standard_normal((3, 3)), np.array([0, 0, 1])
        t, y = directions(200, 3, 0), dichotomies("uniform", 200, 2, 0)
        alone, thrice = (measured(np.repeat(points, k, axis=0), np.repeat(labels, k), t, y) for k in (1, 3))
        inside = np.linalg.norm(t - cone.project(points_module.manifolds(points, labels), t, y).points(), axis=1) < 1e-9
        assert inside.mean() > 0.05
        assert reasons(alone) == reasons(thrice) == {} and float(thrice["inside_share"]) == 0
        for name in SCALARS:
            np.testing.assert_allclose(thrice[name], alone[name], rtol=1e-9, atol=1e-12, err_msg=name)
        assert reasons(manifold_geometry(*self.everywhere(twice=True), n_t=60))["radius"] == "inside_cone"


def test_a_manifold_that_is_zero_has_no_alignment() -> None:
    points, labels = relu_points()
    points[labels == 2] = 0
    found = manifold_geometry(points, labels, n_t=20)
    assert np.isfinite(found["capacity"]) and found["manifold_inactive_share"][2] == 1
    assert reasons(found) == {}
    assert np.isnan(found["center_cosine"][2, :]).all() and np.isnan(found["manifold_radius"][2])
    assert float(found["center_alignment"]) == pytest.approx(np.nanmean(found["center_cosine"]))  # of pairs that exist
    assert float(found["axis_alignment"]) == pytest.approx(np.nanmean(found["axis_cosine"]))
    only = manifold_geometry(points, labels, n_t=20, inactive="active_only")
    assert reasons(only) == {}
    assert float(only["center_alignment_inner"]) == pytest.approx(np.nanmean(only["center_inner"]))


def test_one_class_alone_is_ever_active() -> None:
    points, labels = relu_points(manifolds=2)
    points[labels == 1] = 0
    found = manifold_geometry(points, labels, n_t=20)
    assert reasons(found)["center_alignment"] == "undefined" and np.isnan(found["center_alignment"].standard_error)


@pytest.mark.parametrize(("manifolds", "size", "dimension"), [(20, 5, 9), (100, 5, 32), (64, 3, 32)])
def test_a_radius_that_would_be_rounding_is_undefined(
    manifolds: int, size: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P >= 2 N: [S0, S1] has independent columns, so that c = b in exact arithmetic; whichever anchors are chosen."""
    monkeypatch.setattr(manifold, "FEW", 1.0)
    points, labels = relu_points(manifolds=manifolds, size=size, dimension=dimension)
    found = manifold_geometry(points, labels, n_t=80)
    assert set(reasons(found)) == {"radius", "capacity_approx"} and np.isnan(found["radius"])
    assert np.isnan(found["manifold_radius"]).all() and np.isnan(found["radius"].standard_error)
    product = float(found["capacity"]) * float(found["dimension"])  # R^-2 is 0
    assert float(found["utility"]) == pytest.approx(product, rel=1e-9)
    less, labels = relu_points(manifolds=manifolds, size=size, dimension=manifolds)
    assert float(manifold_geometry(less, labels, n_t=80)["radius"]) > 0


@pytest.mark.parametrize("factor", [1e160, 1e-170, 1e300, 1e-300, 1e70, 1e-78])
def test_any_scale(factor: float) -> None:
    points, labels = relu_points(manifolds=3, size=4, dimension=9)
    points[0] = 0
    expected, found = (manifold_geometry(x, labels, n_t=30) for x in (points, points * factor))
    for name in SCALARS:
        if not name.endswith("_inner"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)
            errors = found[name].standard_error, expected[name].standard_error
            np.testing.assert_allclose(*errors, rtol=1e-7, err_msg=name)
    square = np.float64(factor) ** 2 if 1e-150 < factor < 1e150 else None
    numbers = [(found[name].value, expected[name].value) for name in ("axis_alignment_inner", "center_alignment_inner")]
    numbers.append((found["center_alignment_inner"].standard_error, expected["center_alignment_inner"].standard_error))
    for value, usual in numbers:
        if square is None:
            assert np.isnan(value)
        else:
            np.testing.assert_allclose(value, usual * square, rtol=1e-9)
    if square is None:
        assert reasons(found)["axis_alignment_inner"] == "undefined"
        assert np.isnan(found["axis_inner"]).all()


def test_constant_points_have_nothing_left_when_centred() -> None:
    points = np.tile(np.random.default_rng(0).standard_normal(7) * 1e3, (30, 1))
    found = manifold_geometry(points, np.arange(30) % 3, n_t=10, center=True)
    assert np.isnan(found["capacity"]) and reasons(found)["capacity"] == "undefined"
    points += 1e-9 * np.random.default_rng(1).standard_normal(points.shape)
    assert np.isfinite(manifold_geometry(points, np.arange(30) % 3, n_t=10, center=True)["capacity"])


def test_one_pair_of_draws_has_no_error() -> None:
    points, labels = relu_points(manifolds=2)
    found = manifold_geometry(points, labels, n_t=2, dichotomies="opposite_pairs")
    assert np.isfinite(found["capacity"]) and np.isnan(found["capacity"].standard_error)
    assert reasons(found) == {} and "standard error" in found["capacity"].note


def test_share_of_draws_with_other_anchors() -> None:
    """In three dimensions the cones of many points hold many t, whose anchors are then free."""
    points, labels = relu_points(manifolds=2, size=20, dimension=3)
    points = points + np.random.default_rng(0).standard_normal(points.shape) * 3
    found = cone.project(
        points_module.manifolds(points, labels), directions(50, 3, 0), dichotomies("uniform", 50, 2, 0)
    )
    inside = np.linalg.norm(found.t - found.points(), axis=1) < 1e-9
    assert inside.mean() > 0.2
    told = manifold_geometry(points, labels, n_t=50)
    assert float(told["nonunique_share"]) == pytest.approx(inside.mean())
    assert float(manifold_geometry(*relu_points(), n_t=50)["nonunique_share"]) == 0


def test_what_cannot_be_asked() -> None:
    with pytest.raises(WaterjarError, match="did you mean 'support'"):
        manifold_geometry(np.eye(2), [0, 1], inactive="suport")  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="at least 2 draws"):
        manifold_geometry(np.eye(2), [0, 1], n_t=1)
    for rng in (None, -1, 1.5, True):
        with pytest.raises(WaterjarError, match="a whole number from 0 on"):
            manifold_geometry(np.eye(2), [0, 1], rng=rng)  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="n_t=2.5: it must be a whole number"):
        manifold_geometry(np.eye(2), [0, 1], n_t=2.5)  # type: ignore[arg-type]


def test_given_dichotomies_and_labels_of_any_kind() -> None:
    y = np.array([[1, -1], [-1, 1], [1, -1]])
    found = manifold_geometry(np.eye(2), np.array(["b", "a"]), n_t=3, dichotomies=y)
    assert found.labels.tolist() == ["a", "b"] and found.dichotomies == "given"
