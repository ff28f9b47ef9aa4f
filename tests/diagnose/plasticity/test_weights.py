"""Metrics of weights, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg

from waterjar.diagnose.plasticity import (
    gradient_norm,
    parameters,
    weight_change,
    weight_effective_rank,
    weight_magnitude,
)
from waterjar.errors import WaterjarError


@given(arrays(np.float32, st.integers(1, 50), elements=st.floats(-100, 100, width=32)))
@settings(deadline=None, max_examples=50)
def test_against_numpy(w: np.ndarray) -> None:
    wide = w.astype(np.float64)
    assert float(weight_magnitude(w)) == pytest.approx(np.sqrt(np.mean(wide**2)), rel=1e-12)
    assert float(gradient_norm(w)) == pytest.approx(np.linalg.norm(wide), rel=1e-12)
    other = np.roll(wide, 1)
    assert float(weight_change(w, other)) == pytest.approx(np.sqrt(np.mean((wide - other) ** 2)), rel=1e-9, abs=1e-12)
    assert float(weight_change(w, w)) == 0.0


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.arange(10.0)
    whole = float(weight_change(w, w**2))
    monkeypatch.setattr(parameters, "_BLOCK", 3)
    assert float(weight_change(w, w**2)) == pytest.approx(whole, rel=1e-15)


def test_float16_does_not_overflow() -> None:
    assert float(weight_magnitude(np.full(4, 300.0, np.float16))) == 300.0


def test_nan_and_nothing() -> None:
    assert weight_magnitude([1.0, np.nan]).reason == "not_a_number"
    assert weight_change([1.0, 2.0], [np.inf, 0.0]).reason == "not_a_number"
    assert weight_magnitude([]).reason == "undefined"
    assert gradient_norm([np.nan]).reason == "not_a_number"
    with pytest.raises(WaterjarError, match="expected the same"):
        weight_change([1.0], [1.0, 2.0])


def test_rank_of_a_kernel_is_that_of_its_matrix() -> None:
    kernel = np.random.default_rng(0).standard_normal((6, 3, 2, 2))
    s = linalg.svdvals(kernel.reshape(6, 12))
    p = s / s.sum()
    assert float(weight_effective_rank(kernel)) == pytest.approx(np.exp(-(p * np.log(p)).sum()))
    assert weight_effective_rank(np.ones(5)).reason == "undefined"
    assert weight_effective_rank(np.zeros((2, 2))).reason == "undefined"
    assert weight_effective_rank(np.array([[np.nan, 1.0]])).reason == "not_a_number"
