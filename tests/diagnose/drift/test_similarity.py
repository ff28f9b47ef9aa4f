"""CKA and Procrustes against independent implementations: HSIC as the papers write it, scipy's Procrustes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, spatial

from waterjar.diagnose.drift import Cloud, linear_cka, participation_ratio, procrustes_distance
from waterjar.errors import WaterjarError

SHAPES = [(20, 4, 6), (8, 12, 15), (10, 10, 10), (9, 3, 30), (4, 2, 2)]


def unbiased_hsic(k: np.ndarray, l: np.ndarray) -> float:
    """Song et al. 2012, eq. 5, with its double and triple sums written out."""
    n = len(k)
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))
    trace = sum(k[i, j] * l[j, i] for i in range(n) for j in range(n))
    sums = k.sum() * l.sum() / ((n - 1) * (n - 2))
    chained = sum(k[i, q] * l[q, j] for i in range(n) for q in range(n) for j in range(n))
    return (trace + sums - 2 / (n - 2) * chained) / (n * (n - 3))


def biased_hsic(k: np.ndarray, l: np.ndarray) -> float:
    """Kornblith et al. 2019, eq. 3: tr(K H L H) / (n - 1)^2."""
    n = len(k)
    h = np.eye(n) - np.ones((n, n)) / n
    return float(np.trace(k @ h @ l @ h)) / (n - 1) ** 2


def cka_of(hsic: object, a: np.ndarray, b: np.ndarray) -> float:
    k, l = a @ a.T, b @ b.T
    return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))  # type: ignore[operator]


def draw(shape: tuple[int, int, int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, p, q = shape
    a = rng.standard_normal((n, p)) + 3.0
    return a, 0.5 * a @ rng.standard_normal((p, q)) + rng.standard_normal((n, q)) - 1.0


class TestCka:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("seed", range(3))
    def test_against_hsic_with_all_its_sums(self, shape: tuple[int, int, int], seed: int) -> None:
        a, b = draw(shape, seed)
        before = a.copy()
        assert float(linear_cka(a, b)) == pytest.approx(cka_of(unbiased_hsic, a, b), rel=1e-8, abs=1e-10)
        assert float(linear_cka(a, b, debiased=False)) == pytest.approx(cka_of(biased_hsic, a, b), rel=1e-10)
        np.testing.assert_array_equal(a, before)

    @given(st.integers(0, 10**6))
    @settings(deadline=None, max_examples=30)
    def test_rotation_scale_shift_and_order_do_not_matter(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = draw((12, 5, 7), seed)
        rotation = linalg.qr(rng.standard_normal((7, 7)))[0]
        other = rng.uniform(0.1, 10) * b @ rotation + rng.standard_normal(7)
        order = rng.permutation(12)
        for debiased in (True, False):
            plain = float(linear_cka(a, b, debiased=debiased))
            assert float(linear_cka(a[order], other[order], debiased=debiased)) == pytest.approx(plain, abs=1e-10)
            assert float(linear_cka(b, a, debiased=debiased)) == pytest.approx(plain, abs=1e-12)
            assert float(linear_cka(a, a, debiased=debiased)) == pytest.approx(1.0, abs=1e-12)
        assert -1e-12 <= float(linear_cka(a, b, debiased=False)) <= 1 + 1e-12

    def test_noise_is_similar_to_nothing_once_the_bias_is_gone(self) -> None:
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal((40, 400)), rng.standard_normal((40, 400))
        assert float(linear_cka(a, b, debiased=False)) > 0.8
        assert abs(float(linear_cka(a, b))) < 0.05

    def test_undefined(self) -> None:
        a, b = draw((6, 2, 3))
        assert linear_cka(a[:3], b[:3]).reason == "undefined"
        assert float(linear_cka(a[:3], b[:3], debiased=False)) > 0
        assert linear_cka(np.full((6, 2), 0.1), b).reason == "undefined"  # constant, though not a binary fraction
        assert linear_cka(a, np.full((6, 20), 1e8 / 3)).reason == "undefined"
        b[2, 0] = np.nan
        assert linear_cka(a, b).reason == "not_a_number" == linear_cka(b, a).reason
        with pytest.raises(WaterjarError, match="6 and 5 samples"):
            linear_cka(a, a[:5])


class TestProcrustes:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_against_scipy(self, shape: tuple[int, int, int]) -> None:
        a, b = draw(shape)
        width = max(a.shape[1], b.shape[1])
        pad = [np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (a, b)]
        unit = [(x - x.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0)) for x in pad]
        rotation, _ = linalg.orthogonal_procrustes(unit[1], unit[0])
        left = np.linalg.norm(unit[0] - unit[1] @ rotation)
        found = float(procrustes_distance(a, b))
        assert found == pytest.approx(left, rel=1e-7)
        _, _, disparity = spatial.procrustes(*pad)
        assert 1 - (1 - found**2 / 2) ** 2 == pytest.approx(disparity, rel=1e-7)

    @given(st.integers(0, 10**6))
    @settings(deadline=None, max_examples=30)
    def test_a_distance(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b, c = (rng.standard_normal((8, 5)) for _ in range(3))
        ab, bc, ac = (float(procrustes_distance(x, y)) for x, y in ((a, b), (b, c), (a, c)))
        assert ac <= ab + bc + 1e-9
        assert float(procrustes_distance(b, a)) == pytest.approx(ab, rel=1e-9)
        assert 0 <= ab <= np.sqrt(2)
        rotation = linalg.qr(rng.standard_normal((5, 5)))[0]
        assert float(procrustes_distance(a, 3 * a @ rotation - 1)) < 1e-7

    def test_undefined(self) -> None:
        a, b = draw((6, 2, 3))
        assert procrustes_distance(a, np.full((6, 2), 0.1)).reason == "undefined"
        a[0, 0] = np.inf
        assert procrustes_distance(a, b).reason == "not_a_number"


class TestParticipationRatio:
    @pytest.mark.parametrize("shape", [(30, 5), (6, 40)])
    def test_against_eigenvalues_of_the_covariance(self, shape: tuple[int, int]) -> None:
        f = np.random.default_rng(0).standard_normal(shape) * np.linspace(1, 3, shape[1]) + 7
        values = np.linalg.eigvalsh(np.cov(f.T))
        assert float(participation_ratio(f)) == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=1e-9)

    def test_edges(self) -> None:
        assert float(participation_ratio(np.outer(np.arange(5.0), np.ones(3)))) == pytest.approx(1)
        assert participation_ratio(np.full((4, 3), 0.1)).reason == "undefined"
        assert participation_ratio([[np.nan]]).reason == "not_a_number"


def test_a_cloud_is_shared_as_it_is() -> None:
    cloud = Cloud.of(np.eye(3))
    assert Cloud.of(cloud) is cloud


def test_dead_units_have_no_part_in_any_comparison() -> None:
    rng = np.random.default_rng(0)
    x, y, alive = rng.standard_normal((30, 6)), rng.standard_normal((30, 6)), np.arange(9) % 3 > 0
    wide_x, wide_y = np.zeros((30, 9)), np.full((30, 9), 2.5)
    wide_x[:, alive], wide_y[:, alive] = x, y
    for compare in (linear_cka, procrustes_distance):
        assert float(compare(wide_x, wide_y)) == pytest.approx(float(compare(x, y)), rel=1e-13)
    assert float(procrustes_distance(wide_x, wide_x)) < 1e-7
