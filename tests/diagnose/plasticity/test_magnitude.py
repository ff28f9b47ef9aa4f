"""Features and weights of extreme size: the right number, or NaN that says why, and never a warning."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from waterjar.diagnose import plasticity
from waterjar.diagnose.magnitude import in_range, scaled_back
from waterjar.diagnose.plasticity.parameters import Parameters, pooled
from waterjar.diagnose.result import Result
from waterjar.diagnose.tensors import Tensor

RNG = np.random.default_rng(0)
FEATURES = np.maximum(RNG.standard_normal((30, 8)), 0.0) + 1e-3
FREE = [
    plasticity.dormant_units,
    plasticity.active_units,
    plasticity.stable_rank,
    plasticity.spectral_stable_rank,
    plasticity.effective_rank,
    plasticity.weight_effective_rank,
]
EXPONENTS = [-1000, -550, -340, -260, 260, 340, 520, 1000, 1015]


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize("measure", FREE)
def test_scale_free(measure: Callable[..., Result], k: int) -> None:
    far = measure(np.ldexp(FEATURES, k))
    assert float(far) == pytest.approx(float(measure(FEATURES)), rel=1e-9)


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize(
    ("measure", "power"),
    [(plasticity.feature_norm, 1), (plasticity.weight_magnitude, 1), (plasticity.feature_variance, 2)],
)
def test_grows_with_the_scale_or_says_that_it_cannot(measure: Callable[..., Result], power: int, k: int) -> None:
    near, far = float(measure(FEATURES)), measure(np.ldexp(FEATURES, k))
    if power * k > 1020:
        assert far.reason == "not_a_number"
        assert "more than float64 can hold" in far.note
    elif power * k < -1060:
        assert float(far) == 0.0  # what is nearest to it
    else:
        assert float(far) == pytest.approx(math.ldexp(near, power * k), rel=1e-12)


def test_the_largest_there_is() -> None:
    most = np.finfo(np.float64).max
    features = np.full((4, 3), most)
    features[0] = -most
    assert plasticity.feature_norm(features).reason == "not_a_number"
    assert float(plasticity.effective_rank(features)) == pytest.approx(1.0)
    assert float(plasticity.dormant_units(features)) == 0.0
    assert float(plasticity.weight_magnitude(features)) == pytest.approx(most)
    assert plasticity.weight_change(features[0], features[1]).reason == "not_a_number"
    assert plasticity.gradient_norm(features).reason == "not_a_number"
    assert float(plasticity.gradient_norm([3e200, 4e200])) == pytest.approx(5e200)
    assert float(plasticity.gradient_norm([3e-200, 4e-200])) == pytest.approx(5e-200)
    assert float(plasticity.weight_change([1e200], [1e200])) == 0.0
    for bad in (math.nan, math.inf):
        assert plasticity.weight_change([1e200, bad], [0.0, 0.0]).note == "NaN or infinite parameters"
        assert plasticity.weight_change([0.0, 0.0], [1e200, bad]).note == "NaN or infinite parameters"


@pytest.mark.parametrize("size", [1e-250, 1.0, 1e250])
def test_tensors_pooled(size: float) -> None:
    now = np.array([3.0, 3.0, 5.0, 0.0]) * size
    tensors = (Tensor("a", slice(0, 2), (2,)), Tensor("b", slice(2, 4), (2,)))
    parameters = Parameters(now, None, None, tensors)
    found = parameters.each(lambda tensor: plasticity.weight_magnitude(now[tensor.place]))
    assert float(pooled(found)) == pytest.approx(math.sqrt(43.0 / 4.0) * size)
    assert float(pooled([Result(0.0, n=3)])) == 0.0


def test_in_range_leaves_ordinary_numbers_as_they_are() -> None:
    for values in (FEATURES, np.zeros((2, 2)), np.empty((0, 3)), np.full(3, 3e38, np.float32)):
        wide, exponent = in_range(values)
        assert exponent == 0 and wide.dtype == np.float64
        np.testing.assert_array_equal(wide, values)
    wide, exponent = in_range(np.array([5e-324, 0.0]))
    assert math.ldexp(wide[0], exponent) == 5e-324 and 0.1 < wide[0] < 10.0
    assert float(scaled_back(0.75, 2, n=1)) == 3.0
