"""Neural collapse on a constructed simplex, the linear probe against refits, forgetting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waterjar.diagnose.drift import (
    equiangularity,
    equinorm,
    forgotten,
    linear_probe_accuracy,
    maximal_angle,
    nearest_mean_mismatch,
    self_duality,
    within_class_variability,
)
from waterjar.diagnose.drift.classes import Classes
from waterjar.errors import WaterjarError


def simplex(classes: int, units: int, seed: int = 0) -> np.ndarray:
    """An equiangular tight frame of `classes` vectors in `units` dimensions, rotated."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((units, classes)))[0]
    frame = np.sqrt(classes / (classes - 1)) * (np.eye(classes) - np.ones((classes, classes)) / classes)
    return frame @ rotation.T


def collapsed(classes: int = 5, each: int = 4, units: int = 9, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    labels = np.repeat(np.arange(classes), each)
    rng = np.random.default_rng(1)
    features = 3.0 * simplex(classes, units)[labels] + 7.0  # the middle is not the origin
    return features + noise * rng.standard_normal(features.shape), labels


class TestSimplex:
    @pytest.mark.parametrize("classes", [2, 3, 10])
    def test_all_four_collapse(self, classes: int) -> None:
        f, y = collapsed(classes, units=12)
        w = 0.2 * simplex(classes, 12)
        bias = -w @ np.full(12, 7.0)
        assert float(within_class_variability(f, y)) == pytest.approx(0, abs=1e-20)
        assert float(equinorm(f, y)) == pytest.approx(0, abs=1e-12)
        assert float(equiangularity(f, y)) == pytest.approx(0, abs=1e-12)
        assert float(maximal_angle(f, y)) == pytest.approx(0, abs=1e-12)
        assert float(self_duality(f, y, w)) == pytest.approx(0, abs=1e-20)
        assert float(nearest_mean_mismatch(f, y, w, bias)) == 0.0

    def test_away_from_it_none_does(self) -> None:
        f, y = collapsed(noise=1.0)
        rng = np.random.default_rng(2)
        w = rng.standard_normal((5, 9))
        assert float(within_class_variability(f, y)) > 0.05
        assert min(float(m(f, y)) for m in (equinorm, equiangularity, maximal_angle)) > 0.01
        assert 0.5 < float(self_duality(f, y, w)) < 3.5
        assert 0 < float(nearest_mean_mismatch(f, y, w, np.zeros(5))) <= 1
        assert float(self_duality(f, y, -Classes.of(f, y).means)) == pytest.approx(4)

    @given(st.integers(0, 10**6))
    @settings(deadline=None, max_examples=25)
    def test_nc1_and_nc2_against_matrices_written_out(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        counts = rng.integers(2, 6, size=4)
        y = np.repeat([0, 3, 4, 9], counts)
        f = rng.standard_normal((len(y), 6)) + 2.0 * rng.standard_normal((10, 6))[y]
        means = np.array([f[y == c].mean(axis=0) for c in np.unique(y)])
        off = means - means.mean(axis=0)
        between = sum(np.outer(m, m) for m in off) / 4
        within = sum(np.cov(f[y == c].T, ddof=0) for c in np.unique(y)) / 4
        nc1 = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 4
        assert float(within_class_variability(f, y)) == pytest.approx(nc1, rel=1e-6)
        lengths = np.sqrt((off**2).sum(axis=1))
        assert float(equinorm(f, y)) == pytest.approx(lengths.std() / lengths.mean(), rel=1e-9)
        cosines = [off[i] @ off[j] / lengths[i] / lengths[j] for i in range(4) for j in range(4) if i != j]
        assert float(equiangularity(f, y)) == pytest.approx(np.std(cosines), rel=1e-9, abs=1e-12)
        assert float(maximal_angle(f, y)) == pytest.approx(np.mean(np.abs(np.array(cosines) + 1 / 3)), rel=1e-9)
        w, b = rng.standard_normal((10, 6)), rng.standard_normal(10)
        rows = w[[0, 3, 4, 9]]
        nc3 = np.linalg.norm(rows / np.linalg.norm(rows) - off / np.linalg.norm(off)) ** 2
        assert float(self_duality(f, y, w)) == pytest.approx(nc3, rel=1e-9)
        told = np.argmax(f @ rows.T + b[[0, 3, 4, 9]], axis=1)
        near = np.argmin([[np.linalg.norm(x - m) for m in means] for x in f], axis=1)
        assert float(nearest_mean_mismatch(f, y, w, b)) == np.mean(told != near)


class TestMissing:
    def test_one_class(self) -> None:
        f = np.random.default_rng(0).standard_normal((4, 3))
        for metric in (within_class_variability, equinorm, equiangularity, maximal_angle, linear_probe_accuracy):
            assert metric(f, np.zeros(4, int)).reason == "undefined"
        assert self_duality(f, np.zeros(4, int), np.eye(3)).reason == "undefined"

    def test_one_sample_of_a_class(self) -> None:
        f = np.random.default_rng(0).standard_normal((4, 3))
        assert within_class_variability(f, [0, 1, 2, 3]).reason == "undefined"
        assert within_class_variability(f, [0, 0, 0, 3]).reason == "undefined"
        assert linear_probe_accuracy(f, [0, 0, 0, 3]).reason == "undefined"
        assert float(equinorm(f, [0, 1, 2, 3])) > 0  # means there are

    def test_constant_units_are_fine_constant_features_are_not(self) -> None:
        f, y = collapsed(noise=0.5)
        f[:, 2] = 0.1
        without = np.delete(f, 2, axis=1)
        assert float(within_class_variability(f, y)) == pytest.approx(float(within_class_variability(without, y)))
        same = np.full((4, 3), 0.1)
        for metric in (within_class_variability, equinorm, equiangularity, linear_probe_accuracy):
            assert metric(same, [0, 0, 1, 1]).reason == "undefined"

    def test_a_mean_in_the_middle_has_no_direction(self) -> None:
        f = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
        assert equiangularity(f, [0, 1, 2]).reason == "undefined" == maximal_angle(f, [0, 1, 2]).reason
        assert float(equinorm(f, [0, 1, 2])) > 0

    def test_nan_features_and_weights(self) -> None:
        f, y = collapsed()
        w = simplex(5, 9)
        assert self_duality(f, y, w[:3]).reason == "undefined"  # labels beyond the readout
        assert nearest_mean_mismatch(f, y, w[:3], np.zeros(3)).reason == "undefined"
        assert self_duality(f, y, 0 * w).reason == "undefined"
        assert self_duality(f, y, np.nan * w).reason == "not_a_number"
        assert nearest_mean_mismatch(f, y, np.nan * w, np.zeros(5)).reason == "not_a_number"
        f[3, 3] = np.nan
        for metric in (within_class_variability, equinorm, maximal_angle, linear_probe_accuracy):
            assert metric(f, y).reason == "not_a_number"
        assert nearest_mean_mismatch(f, y, w, np.zeros(5)).reason == "not_a_number"

    def test_wrong_shapes(self) -> None:
        with pytest.raises(WaterjarError, match=r"\(sample\) = \(4,\)"):
            equinorm(np.ones((4, 2)), [0, 1])
        with pytest.raises(WaterjarError, match=r"\(sample\) = \(4,\)"):
            linear_probe_accuracy(np.ones((4, 2)), [0, 1])
        with pytest.raises(WaterjarError, match="ridge=0"):
            linear_probe_accuracy(np.ones((4, 2)), [0, 1, 0, 1], ridge=0)


def refitted(f: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """Leave one out the long way: n ridge regressions, the intercept not penalised."""
    right = 0
    for i in range(len(f)):
        rest = np.arange(len(f)) != i
        x = np.column_stack([np.ones(rest.sum()), f[rest]])
        one_hot = np.eye(y.max() + 1)[y[rest]]
        cost = penalty * np.diag([0.0] + [1.0] * f.shape[1])
        beta = np.linalg.solve(x.T @ x + cost, x.T @ one_hot)
        right += np.argmax(np.concatenate([[1.0], f[i]]) @ beta) == y[i]
    return right / len(f)


class TestProbe:
    @pytest.mark.parametrize("shape", [(30, 6), (14, 40)])
    @pytest.mark.parametrize("seed", range(4))
    def test_against_n_refits(self, shape: tuple[int, int], seed: int) -> None:
        rng = np.random.default_rng(seed)
        y = np.arange(shape[0]) % 3
        f = rng.standard_normal(shape) + 1.2 * rng.standard_normal((3, shape[1]))[y] * (rng.random() + 0.2) + 5
        penalty = 0.05 * ((f - f.mean(axis=0)) ** 2).sum() / min(shape[0] - 1, shape[1])
        assert float(linear_probe_accuracy(f, y, ridge=0.05)) == refitted(f, y, penalty)

    def test_noise_is_not_learned_by_heart(self) -> None:
        rng = np.random.default_rng(0)
        f, y = rng.standard_normal((60, 300)), np.arange(60) % 2
        assert float(linear_probe_accuracy(f, y)) < 0.75  # every labelling of these is separable

    def test_separable_classes(self) -> None:
        f, y = collapsed(noise=0.1)
        assert float(linear_probe_accuracy(f, y)) == 1.0


class TestForgotten:
    def test_by_hand(self) -> None:
        np.testing.assert_allclose(
            forgotten([0.1, 0.8, 0.5, 0.9, 0.2], [0, 0, 1, 1, 2], 0), [np.nan, np.nan, 0.3, -0.1, 0.6]
        )
        np.testing.assert_allclose(forgotten([0.1, 0.8, 0.5], [0, 0, 1], 1), [np.nan] * 3)
        assert np.isnan(forgotten([0.1, 0.8], [-1, -1], -1)).all()  # joint training, a set of no task
        assert np.isnan(forgotten([0.1, 0.8], [0, 0], 3)).all()
