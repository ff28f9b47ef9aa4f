"""Points of low rank that were rounded when they were recorded, against the same points in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from waterjar.diagnose.geometry import Geometry, geometry_of, manifold_geometry, manifolds, project, simulated_capacity
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.manifold import OF_PROJECTIONS, PAIRS, PER_MANIFOLD
from waterjar.diagnose.geometry.rounding import Directions, digits, told_apart, without_rounding

Floats = NDArray[np.float64]
OF_ANCHORS = [name for name in SCALARS if name != "capacity"]
RELATIVE = {"f4": 1e-6, "f2": 2e-3, "bfloat16": 2e-2}
"""What rounding of the points may change of the capacity of points that are not degenerate."""


def low_rank(classes: int, size: int, units: int, rank: int, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """What a linear layer makes of `rank` inputs: classes around centres, units that are sums of inputs."""
    rng, labels = np.random.default_rng(seed), np.repeat(np.arange(classes), size)
    inputs = np.maximum(rng.standard_normal((classes, rank))[labels] + rng.standard_normal((len(labels), rank)), 0)
    return inputs @ rng.standard_normal((rank, units)), labels


def rounded(x: Floats, form: str) -> NDArray[np.floating]:
    """As recorded; bfloat16 is kept in float32, by a recorder too."""
    if form != "bfloat16":
        return x.astype(form)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def reasons(found: Geometry) -> dict[str, str]:
    return {name: found[name].reason for name in SCALARS if found[name].is_missing}


def same_bits(found: Geometry, points: NDArray[np.floating], labels: NDArray[np.int64]) -> None:
    """All numbers are those of the points as they were recorded."""
    of, n = manifolds(points, labels), found.n_t
    t, y = directions(n, of.units.shape[1], 0), dichotomies("uniform", n, of.count, 0)
    recorded = geometry_of(project(of, t, y, margin=True, anchors=True), inactive="zero", paired=False)
    for name in (*SCALARS, *PAIRS, *PER_MANIFOLD, *OF_PROJECTIONS):
        np.testing.assert_array_equal(found.numbers[name], recorded.numbers[name], err_msg=name)


@pytest.mark.parametrize("form", RELATIVE)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    ("classes", "size", "units", "rank"), [(2, 50, 128, 12), (2, 20, 30, 20), (5, 12, 40, 10), (10, 20, 64, 30)]
)
def test_capacity_is_that_of_the_points_before_rounding(
    classes: int, size: int, units: int, rank: int, center: bool, form: str
) -> None:
    points, labels = low_rank(classes, size, units, rank)
    truth = manifold_geometry(points, labels, center=center)
    for given in (rounded(points, form), rounded(points, form).astype(np.float64)):
        found = manifold_geometry(given, labels, center=center)
        np.testing.assert_allclose(found["capacity"], truth["capacity"], rtol=RELATIVE[form])
        assert reasons(found) == reasons(truth)
        np.testing.assert_allclose(found["inside_share"], truth["inside_share"], atol=0.01)
        dropped = float(found["dropped_directions"])
        assert dropped in (0, min(len(points), units) - rank, min(len(points), units) - rank - center)
        assert (f"{dropped:g} directions are rounding alone" in found["capacity"].note) == (dropped > 0)
    assert float(truth["dropped_directions"]) == 0 and truth["capacity"].note == ""


def test_without_it_the_numbers_would_be_those_of_the_rounding() -> None:
    """Few inputs, many units, as in a bottleneck: t is inside the cone, and rounding let it out."""
    points, labels = low_rank(5, 12, 40, 10)
    truth, found = (manifold_geometry(points.astype(form), labels) for form in ("f8", "f4"))
    t, y = directions(20, 40, 0), dichotomies("uniform", 20, 5, 0)
    before, after = (project(manifolds(points.astype(form), labels), t, y).square for form in ("f8", "f4"))
    assert after.mean() > 1.1 * before.mean()
    assert reasons(found) == reasons(truth) == dict.fromkeys(OF_ANCHORS, "inside_cone")
    assert float(found["dropped_directions"]) == 30
    np.testing.assert_allclose(found["capacity"], truth["capacity"], rtol=1e-6)


def test_simulated_capacity_leaves_them_out_too() -> None:
    points, labels = low_rank(2, 50, 60, 12)
    truth, found = (simulated_capacity(points.astype(form), labels) for form in ("f8", "f4"))
    np.testing.assert_array_equal(found["critical"], truth["critical"])
    assert found["capacity"].note == "48 directions are rounding alone, and are left out"
    assert truth["capacity"].note == ""
    inside, labels = low_rank(5, 12, 40, 10)
    assert simulated_capacity(inside.astype("f4"), labels)["capacity"].reason == "never_reached"


def test_a_linear_layer_that_calculates_in_float32() -> None:
    """Sums are rounded, too; the mean of all units is zero in a layer that removes it."""
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(10), 40)
    inputs, weights, bias = (rng.standard_normal(size).astype(np.float32) for size in ((400, 180), (180, 256), 256))
    of = manifolds(inputs @ weights + bias, labels)
    cleaned, told = without_rounding(of)
    assert told == Directions(181, 75) and np.linalg.matrix_rank(cleaned.units) == 181
    moved = np.linalg.norm(cleaned.points - of.points, axis=1) / np.linalg.norm(of.points, axis=1)
    assert 0 < moved.max() < 5 * 2.0**-23
    wide = rng.standard_normal((400, 64)).astype(np.float32)
    without_mean = wide - wide.mean(axis=1, keepdims=True)
    assert without_rounding(manifolds(without_mean, labels))[1] == Directions(63, 1)


class TestNothingIsTouched:
    """Where all directions are there, or it cannot be told."""

    @pytest.mark.parametrize("form", ["f8", "f4", "f2"])
    @pytest.mark.parametrize("shape", [(4, 10, 60), (4, 20, 30), (2, 30, 60)])
    def test_full_rank(self, shape: tuple[int, int, int], form: str) -> None:
        classes, size, units = shape
        rng, labels = np.random.default_rng(0), np.repeat(np.arange(classes), size)
        points = np.maximum(
            rng.standard_normal((classes, units))[labels] + rng.standard_normal((len(labels), units)), 0
        )
        points[:, ::7], points[3], points[5] = 0, 0, points[6]  # dead units, a zero point, one that stands twice
        of = manifolds(points.astype(form), labels)
        assert without_rounding(of, of.gram)[0] is without_rounding(of)[0] is of
        found = manifold_geometry(points.astype(form), labels, n_t=20)
        same_bits(found, points.astype(form), labels)
        assert float(found["dropped_directions"]) == float(found["doubtful_directions"]) == 0

    @pytest.mark.parametrize("form", ["f8", "f4"])
    @pytest.mark.parametrize("radius", [1e-6, 1e-5, 1e-3])
    def test_classes_that_collapsed(self, radius: float, form: str) -> None:
        """A radius of 1e-6 is ten times what float32 rounds: data. Its smallest directions are not."""
        rng, labels = np.random.default_rng(0), np.repeat(np.arange(4), 15)
        centers = rng.standard_normal((4, 40))
        points = (centers[labels] + radius * rng.standard_normal((60, 40))).astype(form)
        of = manifolds(points, labels)
        cleaned, told = without_rounding(of, of.gram)
        assert cleaned is of and told.dropped == 0
        assert (told.doubtful > 0) == (radius == 1e-6 and form == "f4")
        found = manifold_geometry(points, labels, n_t=20)
        same_bits(found, points, labels)

    def test_what_cannot_be_told_is_said(self) -> None:
        """Smooth units of two inputs: their singular values fall through the rounding without a gap."""
        rng, labels = np.random.default_rng(0), np.repeat([0, 1], 20)
        points = np.tanh(rng.uniform(-0.3, 0.3, (40, 2)) @ rng.standard_normal((2, 30)) + rng.standard_normal(30))
        of = manifolds(points.astype("f4"), labels)
        cleaned, told = without_rounding(of)
        assert cleaned is of and told.doubtful > 3
        found = manifold_geometry(points.astype("f4"), labels, n_t=20)
        assert float(found["doubtful_directions"]) == told.doubtful
        assert f"{told.doubtful} directions may be rounding, and count all the same" in found["capacity"].note

    def test_numbers_that_were_not_rounded(self) -> None:
        """Whole numbers of low rank have no rounding, however few digits they have; nor has float64 of low rank."""
        rng, labels = np.random.default_rng(0), np.repeat(np.arange(4), 15)
        whole = rng.integers(-9, 9, (60, 5)) @ rng.integers(-9, 9, (5, 30))
        for points in (whole, whole.astype("f4"), low_rank(4, 15, 30, 5)[0], np.full((60, 30), np.float32(np.nan))):
            of = manifolds(points, labels)
            assert without_rounding(of)[0] is of


def test_digits_whatever_the_order_in_memory() -> None:
    points = np.random.default_rng(0).standard_normal((6, 4)).astype("f4").astype("f8")
    assert digits(points) == digits(points.T) == digits(points[::-1, ::2]) == 24
    assert digits(np.zeros((2, 2))) == 1 and digits(points + 2.0**-40) > 24


def test_limits_grow_with_the_sums_that_were_rounded() -> None:
    values = np.array([*np.ones(100), 1e-6])
    assert told_apart(values, 1e-7, sums=True) == Directions(100, 1)
    assert told_apart(values, 1e-7, sums=False) == Directions(101, 0, 0)
    assert told_apart(np.array([1.0, 0.0]), 1e-7, sums=True) == Directions(1)
    assert told_apart(np.array([1.0, 1e-14, 0.0]), 1e-7, sums=True) == Directions(1)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("center", [False, True])
def test_any_scale(scale: float, center: bool) -> None:
    points, labels = low_rank(2, 20, 30, 8)
    usual = manifold_geometry(points.astype("f4"), labels, center=center, n_t=20)
    power = 2.0 ** round(np.log2(scale))
    found = manifold_geometry(points.astype("f4").astype("f8") * power, labels, center=center, n_t=20)
    np.testing.assert_allclose(found["capacity"], usual["capacity"], rtol=1e-12)
    assert float(found["dropped_directions"]) == float(usual["dropped_directions"])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["f4", "f2"])
def test_no_low_rank_is_overlooked(form: str) -> None:
    """The Cholesky factor says that all directions are there: never so of 400 sets of points of low rank."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        points, units = rng.integers(10, 120, 2).tolist()
        rank = int(rng.integers(1, min(points, units)))
        x = rng.standard_normal((points, rank)) @ rng.standard_normal((rank, units))
        told = without_rounding(manifolds(x.astype(form), np.arange(points)))[1]
        assert told.dropped == min(points, units) - rank or told.doubtful > 0, (seed, points, units, rank, told)
