"""Metrics of features against closed forms, scipy's SVD and definitions written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg

from waterjar.diagnose import representation as module
from waterjar.diagnose.plasticity import (
    Representation,
    active_units,
    dormant_units,
    effective_rank,
    feature_norm,
    feature_variance,
    singular_values,
    spectral_stable_rank,
    stable_rank,
)
from waterjar.errors import WaterjarError

ALL = (active_units, dormant_units, effective_rank, feature_norm, feature_variance, spectral_stable_rank, stable_rank)


def with_spectrum(values: np.ndarray, rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """A matrix with these singular values."""
    rng = np.random.default_rng(seed)
    u = linalg.qr(rng.standard_normal((rows, len(values))), mode="economic")[0]
    v = linalg.qr(rng.standard_normal((columns, len(values))), mode="economic")[0]
    return (u * values) @ v.T


matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    elements=st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda x: round(x, 3)),
)


class TestDefinitions:
    @given(matrices)
    @settings(deadline=None, max_examples=80)
    def test_against_the_definitions_written_out(self, f: np.ndarray) -> None:
        before = f.copy()
        s = linalg.svdvals(f)
        response = [sum(abs(x) for x in column) / len(column) for column in f.T]
        layer = sum(response) / len(response)
        share = [r <= 0.1 * layer for r in response] if layer > 0 else [True] * len(response)
        # at the threshold itself rounding decides: leave such draws to the exact test below
        if not any(abs(r - 0.1 * layer) < 1e-9 * layer for r in response):
            assert float(dormant_units(f)) == pytest.approx(sum(share) / len(share), abs=1e-15)
        assert float(active_units(f)) == pytest.approx(np.mean([np.mean(row > 0) for row in f]), abs=1e-12)
        assert float(feature_norm(f)) == pytest.approx(np.mean([np.sqrt(sum(row**2)) for row in f]), rel=1e-12)
        assert float(feature_variance(f)) == pytest.approx(np.mean(f.var(axis=0)), rel=1e-9, abs=1e-12)
        if s[0] > 0:
            p = s[s > 0] / s.sum()
            assert float(effective_rank(f)) == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-5)
            assert float(spectral_stable_rank(f)) == pytest.approx((f**2).sum() / s[0] ** 2, rel=1e-9)
            held = np.cumsum(s) / s.sum()
            if not (abs(held - 0.99) < 1e-6).any():
                assert float(stable_rank(f)) == np.argmax(held > 0.99) + 1
        np.testing.assert_array_equal(f, before)

    def test_a_unit_at_a_tenth_of_the_mean_is_dormant(self) -> None:
        # responses 1, 1, 1, 0.1 x mean: the mean is (3 + r) / 4 with r = 0.1 x mean
        r = 0.3 / 3.9
        assert float(dormant_units(np.array([[1.0, 1.0, 1.0, r - 1e-12]]))) == 0.25
        assert float(dormant_units(np.array([[1.0, 1.0, 1.0, r + 1e-12]]))) == 0.0
        assert float(dormant_units(np.array([[1.0, 0.5]]), tau=0.7)) == 0.5

    def test_responses_that_cancel_are_not_dormant(self) -> None:
        f = np.array([[1.0, 5.0, 0.0], [1.0, -5.0, 0.0]])
        assert float(dormant_units(f)) == pytest.approx(1 / 3)  # a plain mean would say 2 / 3

    def test_a_dead_layer(self) -> None:
        dead = np.zeros((4, 3), np.float32)
        assert float(dormant_units(dead)) == 1.0
        assert float(active_units(dead)) == 0.0
        assert float(stable_rank(dead)) == 0.0
        assert float(feature_norm(dead)) == 0.0
        assert float(feature_variance(dead)) == 0.0
        assert effective_rank(dead).reason == "undefined"
        assert spectral_stable_rank(dead).reason == "undefined"

    def test_stable_rank_needs_more_than_the_share(self) -> None:
        assert float(stable_rank(np.diag([99.0, 1.0]))) == 2  # 99 of 100 is not more than 99 %
        assert float(stable_rank(np.diag([99.1, 0.9]))) == 1
        assert float(stable_rank(np.eye(10), energy=0.55)) == 6
        assert float(stable_rank(np.ones((3, 3)))) == 1
        with pytest.raises(WaterjarError, match="between 0 and 1"):
            stable_rank(np.eye(2), energy=1.0)

    def test_variance_of_units_far_from_zero(self) -> None:
        rng = np.random.default_rng(0)
        f = 1e6 + 1e-3 * rng.standard_normal((50, 4))
        f[:, 0] = 0.1
        assert float(feature_variance(f)) == pytest.approx(f.var(axis=0)[1:].sum() / 4, rel=1e-6)
        assert float(feature_variance(np.full((7, 2), 0.1))) == 0.0
        assert float(feature_variance(np.array([[3.0, 4.0]]))) == 0.0

    def test_equal_singular_values(self) -> None:
        q = with_spectrum(np.ones(6), 20, 6)
        assert float(effective_rank(q)) == pytest.approx(6)
        assert float(spectral_stable_rank(q)) == pytest.approx(6)
        assert float(stable_rank(q)) == 6

    @given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
    @settings(deadline=None, max_examples=20)
    def test_order_of_samples_and_units_and_scale_do_not_matter_for_ranks(self, seed: int, scale: float) -> None:
        rng = np.random.default_rng(seed)
        f = np.maximum(rng.standard_normal((15, 8)), 0)
        other = scale * f[rng.permutation(15)][:, rng.permutation(8)]
        for rank in (effective_rank, spectral_stable_rank):
            assert float(rank(other)) == pytest.approx(float(rank(f)), rel=1e-9)


class TestMissing:
    @pytest.mark.parametrize("metric", ALL)
    def test_nan_and_inf_and_nothing(self, metric: object) -> None:
        f = np.ones((3, 2))
        for bad in (np.nan, np.inf, -np.inf):
            f[1, 1] = bad
            found = metric(f)  # type: ignore[operator]
            assert np.isnan(float(found)) and found.reason == "not_a_number"
            assert "1 of the features" in found.note
        assert metric(np.empty((0, 2))).reason == "undefined"  # type: ignore[operator]
        assert metric(np.empty((2, 0))).reason == "undefined"  # type: ignore[operator]

    def test_wrong_shapes_and_kinds(self) -> None:
        with pytest.raises(WaterjarError, match=r"expected \(sample, unit\)"):
            effective_rank(np.ones(3))
        with pytest.raises(WaterjarError, match="real numbers"):
            effective_rank(np.ones((2, 2), complex))

    def test_whole_numbers_and_half_precision(self) -> None:
        assert float(feature_norm(np.array([[3, 4]]))) == 5.0
        assert float(feature_norm(np.array([[300.0, 400.0]], np.float16))) == 500.0  # its squares overflow float16


class TestSingularValues:
    @pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 30), (1, 5), (5, 1)])
    def test_against_scipy_on_either_side(self, shape: tuple[int, int]) -> None:
        f = np.random.default_rng(1).standard_normal(shape)
        np.testing.assert_allclose(singular_values(f), linalg.svdvals(f), rtol=1e-10)

    @pytest.mark.parametrize("decay", [0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 14.0])
    def test_ranks_stay_accurate_however_fast_the_spectrum_decays(self, decay: float) -> None:
        s = 10.0 ** (-decay * np.linspace(0, 1, 40))
        f = with_spectrum(s, 100, 40)
        true = np.exp(-((s / s.sum()) * np.log(s / s.sum())).sum())
        assert float(effective_rank(f)) == pytest.approx(true, rel=1e-6)
        assert float(stable_rank(f)) == np.argmax(np.cumsum(s) > 0.99 * s.sum()) + 1

    def test_gram_where_accurate_else_svd(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[tuple[int, int]] = []
        svd = linalg.svd

        def counted(matrix: np.ndarray, **settings: object) -> np.ndarray:
            calls.append(matrix.shape)
            return svd(matrix, **settings)

        monkeypatch.setattr(module.linalg, "svd", counted)
        rng = np.random.default_rng(0)
        full = np.maximum(rng.standard_normal((200, 50)), 0)
        singular_values(full)
        assert not calls
        dead = full.copy()
        dead[:, ::3] = 0.0
        assert float(effective_rank(dead)) > 1
        assert not calls  # dead units are taken out, and exact
        low = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 50))
        assert np.count_nonzero(singular_values(low) > 1e-10) == 5
        assert calls == [(200, 50)]
        assert singular_values(1e-160 * full)[0] == pytest.approx(1e-160 * linalg.svdvals(full)[0])  # squares vanish
        assert singular_values(1e160 * full)[0] == pytest.approx(1e160 * linalg.svdvals(full)[0])
        assert len(calls) == 3

    def test_one_decomposition_serves_all_ranks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []
        original = module.singular_values
        monkeypatch.setattr(module, "singular_values", lambda m: calls.append(m.shape) or original(m))
        shot = Representation.of(np.random.default_rng(0).standard_normal((30, 10)).astype(np.float32))
        assert shot is Representation.of(shot)
        for metric in ALL:
            metric(shot)
        assert calls == [(30, 10)]

    def test_duplicated_samples(self) -> None:
        f = np.random.default_rng(2).standard_normal((10, 30))
        twice = np.concatenate([f, f])
        assert float(effective_rank(twice)) == pytest.approx(float(effective_rank(f)), rel=1e-9)
