"""Intervals of a mean against scipy's and against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import mean_interval, summarise
from waterjar.stats.intervals import expanded_confidence

TEN = [0.62, 0.71, 0.58, 0.66, 0.69, 0.74, 0.60, 0.65, 0.90, 0.63]


def test_t_by_hand() -> None:
    # mean 2, s 1, t(0.975, 2) = 4.302653: 2 ± 4.302653/√3
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.estimate == 2.0
    assert interval.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert interval.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert (interval.n, interval.n_missing, interval.method, interval.reason) == (3, 0, "t", "")
    assert float(interval) == 2.0


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_t_is_that_of_scipy(confidence: float) -> None:
    interval = mean_interval(TEN, confidence=confidence)
    expected = stats.ttest_1samp(TEN, 0.0).confidence_interval(confidence)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_bca_is_that_of_scipy_at_the_expanded_level() -> None:
    interval = mean_interval(TEN, method="bca", n_resamples=2000, rng=5)
    expected = stats.bootstrap(
        (np.sort(TEN),),
        np.mean,
        n_resamples=2000,
        method="BCa",
        confidence_level=expanded_confidence(0.95, 10),
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert interval.method == "bca_expanded"


def test_the_expanded_level_gives_the_width_of_t_on_normal_quantiles() -> None:
    # A normal interval at the expanded level with ddof 0 is as wide as the t interval with ddof 1.
    x = np.array(TEN)
    normal = stats.norm.interval(expanded_confidence(0.95, 10), loc=x.mean(), scale=x.std(ddof=0) / math.sqrt(10))
    interval = mean_interval(TEN)
    assert normal == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_auto_is_t_below_ten_and_bca_from_there() -> None:
    assert mean_interval(TEN[:9], method="auto") == mean_interval(TEN[:9], method="t")
    assert mean_interval(TEN, method="auto") == mean_interval(TEN, method="bca")


def test_bca_below_ten_is_refused_and_says_why() -> None:
    with pytest.raises(WaterjarError, match="at least 10 seeds and 9 are observed.*miss the tails.*method='t'"):
        mean_interval([*TEN[:9], float("nan")], method="bca")


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    first = mean_interval(TEN, method="bca", rng=1)
    assert first == mean_interval(TEN, method="bca", rng=np.random.SeedSequence(1))
    assert first.low != mean_interval(TEN, method="bca", rng=2).low


def test_missing_seeds_are_counted() -> None:
    interval = mean_interval([1.0, float("nan"), 2.0, 3.0, float("nan")])
    assert (interval.n, interval.n_missing) == (3, 2)
    assert interval.estimate == 2.0


@pytest.mark.parametrize(
    ("values", "estimate", "reason"),
    [
        ([], float("nan"), "no value"),
        ([float("nan")] * 2, float("nan"), "no value"),
        ([4.0], 4.0, "one value"),
        ([1.0, float("inf")], float("nan"), "infinite"),
    ],
)
def test_no_interval_comes_with_a_reason(values: list[float], estimate: float, reason: str) -> None:
    interval = mean_interval(values)
    assert interval.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(interval.low) and math.isnan(interval.high)
    assert reason in interval.reason


@pytest.mark.parametrize("method", ["t", "bca"])
def test_equal_values_have_no_width_and_a_note(method: str) -> None:
    interval = mean_interval([0.1 + 0.2, *[0.3] * 11], method=method)
    assert interval.low == interval.high == interval.estimate
    assert "does not show" in interval.note


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(WaterjarError, match="did you mean 'bca'"):
        mean_interval(TEN, method="bcaa")
    with pytest.raises(WaterjarError, match="confidence=95 is impossible"):
        mean_interval(TEN, confidence=95)


def test_summary_has_the_keys_of_the_seed() -> None:
    row = summarise([1.0, 2.0, 6.0, float("nan")]).as_row()
    assert list(row)[:6] == ["mean", "std", "min", "max", "n_seeds", "confidence_interval"]
    assert (row["mean"], row["min"], row["max"], row["n_seeds"], row["n_missing"]) == (3.0, 1.0, 6.0, 3, 1)
    assert row["std"] == pytest.approx(math.sqrt(7))  # (4 + 1 + 9)/2
    interval = mean_interval([1.0, 2.0, 6.0])
    assert row["confidence_interval"] == (interval.low, interval.high)
    assert float(summarise([1.0, 2.0, 6.0])) == 3.0


def test_summary_of_nothing_and_of_one() -> None:
    nothing = summarise([])
    assert nothing.n_seeds == 0 and math.isnan(nothing.mean) and math.isnan(nothing.min) and nothing.reason
    one = summarise([2.0])
    assert (one.mean, one.min, one.max) == (2.0, 2.0, 2.0) and math.isnan(one.std)
    infinite = summarise([2.0, float("inf")])
    assert infinite.max == float("inf") and math.isnan(infinite.std)


def test_as_row_is_flat() -> None:
    row = mean_interval([1.0, 2.0]).as_row()
    assert set(row) == {"estimate", "low", "high", "n", "n_missing", "method", "confidence", "reason", "note"}
