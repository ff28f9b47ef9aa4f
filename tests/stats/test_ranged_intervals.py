"""Intervals of a mean that stay inside the range of its values: closed forms, the ends, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from waterjar.diagnose.over_seeds import mean_table
from waterjar.errors import WaterjarError
from waterjar.stats import compare_many, mean_interval
from waterjar.stats.intervals import ranged_bounds, scale_of, t_bounds

UNIT, POSITIVE = (0.0, 1.0), (0.0, math.inf)
TRIALS = 20_000
# (draws, range, true mean): where accuracies of continual learners lie, and a positive measure of moderate skew
NAMED = {
    "Beta(5, 95)": (stats.beta(5, 95), UNIT),
    "Beta(50, 50)": (stats.beta(50, 50), UNIT),
    "Beta(95, 5)": (stats.beta(95, 5), UNIT),
    "lognormal, sigma 0.3": (stats.lognorm(0.3), POSITIVE),
}
SKEWED = {
    "Beta(8, 2)": (stats.beta(8, 2), UNIT),
    "Beta(1, 19)": (stats.beta(1, 19), UNIT),
    "Beta(0.5, 9.5)": (stats.beta(0.5, 9.5), UNIT),
    "lognormal, sigma 0.6": (stats.lognorm(0.6), POSITIVE),
    "exponential": (stats.expon(), POSITIVE),
    "lognormal, sigma 1": (stats.lognorm(1.0), POSITIVE),
}


def simulated(name: str, n: int, trials: int = TRIALS) -> tuple[float, float, float]:
    """(coverage, that of t, mean width relative to t) of the nominal 95 % interval of the mean of n draws."""
    draws, within = {**NAMED, **SKEWED}[name]
    samples = draws.rvs((trials, n), random_state=np.random.default_rng(1000 + n))
    own, plain = ranged_bounds(samples, 0.95, within), t_bounds(samples, 0.95)
    covered = [float(np.mean((low <= draws.mean()) & (draws.mean() <= high))) for low, high in (own, plain)]
    return covered[0], covered[1], float((own[1] - own[0]).mean() / (plain[1] - plain[0]).mean())


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(("n", "least"), [(3, 0.90), (5, 0.93), (10, 0.93)])
def test_it_covers_and_is_no_wider_than_it_must_be(name: str, n: int, least: float) -> None:
    covered, _, width = simulated(name, n, 5000)
    assert covered >= least
    assert width <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("n", [3, 4, 5, 7, 10, 20, 50])
def test_it_covers_with_many_studies(name: str, n: int) -> None:
    covered, of_t, width = simulated(name, n, 200_000)
    assert covered >= (0.90 if n < 5 else 0.93)
    assert covered >= of_t - 0.0005
    assert width <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_with_stronger_skew_it_covers_no_less_than_t(name: str, n: int) -> None:
    covered, of_t, _ = simulated(name, n, 100_000)
    assert covered >= of_t


def test_the_interval_of_transformed_values_would_lose_the_mean() -> None:
    """Why only the mean is transformed: t on logits is an interval of something else, and the more seeds the worse."""
    draws = stats.beta(1, 19)
    samples = draws.rvs((5000, 20), random_state=np.random.default_rng(0))
    low, high = t_bounds(np.log(samples) - np.log1p(-samples), 0.95)
    truth = math.log(draws.mean()) - math.log1p(-draws.mean())
    assert np.mean((low <= truth) & (truth <= high)) < 0.65
    assert simulated("Beta(1, 19)", 20, 5000)[0] > 0.92


def test_of_binomial_spread_it_is_wilsons_with_t_for_z() -> None:
    # values whose s²/n is m(1 - m)/n exactly, times n/(n - 1): zeros and ones. Wilson (1927) at z with z² = t² n/(n-1).
    ones, n = 6, 20
    interval = mean_interval([1.0] * ones + [0.0] * (n - ones), within=UNIT)
    z = stats.t.isf(0.025, n - 1) * math.sqrt(n / (n - 1))
    expected = stats.binomtest(ones, n).proportion_ci(1 - 2 * stats.norm.sf(z), method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert interval.method == "t_logit"


def test_bounds_solve_the_score_equation() -> None:
    x = np.array([2.0, 3.0, 7.0])
    half = stats.t.isf(0.025, 2) * x.std(ddof=1) / math.sqrt(3)
    interval = mean_interval(x, within=POSITIVE)

    def score(mu: float) -> float:
        return float((x.mean() - mu) ** 2 - half**2 * mu / x.mean())

    assert interval.low == pytest.approx(brentq(score, 1e-9, x.mean()))
    assert interval.high == pytest.approx(brentq(score, x.mean(), 100.0))
    assert interval.method == "t_log"


def test_ranges_are_scaled_shifted_and_turned() -> None:
    x = np.array([0.9, 0.97, 0.99])
    own = mean_interval(x, within=UNIT)
    wide = mean_interval(4 * x - 3, within=(-3.0, 1.0))
    assert (wide.low, wide.high) == pytest.approx((4 * own.low - 3, 4 * own.high - 3), rel=1e-12)
    turned = mean_interval(1 - x, within=UNIT)
    assert (turned.low, turned.high) == pytest.approx((1 - own.high, 1 - own.low), rel=1e-9)
    above, below = mean_interval(x + 1, within=(1.0, math.inf)), mean_interval(1 - x, within=(-math.inf, 1.0))
    plain = mean_interval(x, within=POSITIVE)
    assert (above.low - 1, above.high - 1) == pytest.approx((plain.low, plain.high), rel=1e-12)
    assert (1 - below.high, 1 - below.low) == pytest.approx((plain.low, plain.high), rel=1e-12)


def test_far_from_any_end_it_is_the_t_interval() -> None:
    x = np.array([0.50001, 0.50002, 0.50004])
    assert mean_interval(x, within=UNIT).low == pytest.approx(mean_interval(x).low, rel=1e-8)
    assert mean_interval(x).method == scale_of((-math.inf, math.inf)) == "t"


@pytest.mark.parametrize("values", [[1.0, 1.0, 0.99], [0.0, 0.0, 1.0], [0.0, 1e-100, 0.0], [1.0, 1.0 - 1e-16, 0.5]])
def test_values_at_the_very_ends(values: list[float]) -> None:
    interval = mean_interval(values, within=UNIT)
    assert 0.0 <= interval.low < interval.estimate < interval.high <= 1.0
    assert interval.reason == interval.note == ""


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_all_at_one_end_has_no_width_and_says_what_that_is_worth(at: float) -> None:
    interval = mean_interval([at] * 4, within=UNIT)
    assert interval.low == interval.high == interval.estimate == at
    assert "does not show that there is no spread" in interval.note
    table = mean_table(np.full((4, 2), at), within=UNIT)
    assert table["low"].tolist() == table["high"].tolist() == [at, at]


def test_rounding_beyond_an_end_is_no_other_range_and_more_is_said() -> None:
    near = mean_interval([1.0 + 1e-7, 0.98, 0.99], within=UNIT)
    assert near.high < 1.0 and near.method == "t_logit" and near.note == ""
    far = mean_interval([1.2, 0.98, 0.99], within=UNIT)
    plain = mean_interval([1.2, 0.98, 0.99])
    assert (far.low, far.high, far.method) == (plain.low, plain.high, "t")
    assert far.note == "1 of 3 values lie outside of [0, 1]"
    with pytest.raises(WaterjarError, match=r"within=\(1, 0\): expected the ends of a range"):
        mean_interval([0.5, 0.6], within=(1, 0))


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12), st.floats(0.5, 0.999))
@settings(deadline=None)
def test_it_never_leaves_the_range_and_holds_the_mean(values: list[float], confidence: float) -> None:
    for within in (UNIT, POSITIVE, (-1.0, 1.0), (-math.inf, 1.0)):
        interval = mean_interval(values, within=within, confidence=confidence)
        assert within[0] <= interval.low <= interval.high <= within[1]
        assert interval.low - 1e-12 <= interval.estimate <= interval.high + 1e-12
        if np.ptp(values) > 1e-9:
            assert interval.low < interval.high


def test_bands_and_tables_use_the_same_kernel() -> None:
    values = np.array([[0.9, 0.2], [1.0, 0.3], [0.98, 0.25]])
    table = mean_table(values, within=UNIT)
    one = mean_interval(values[:, 0], within=UNIT)
    assert (table["low"][0], table["high"][0]) == pytest.approx((one.low, one.high), rel=1e-12)
    assert set(table["interval"]) == {"t_logit"}
    assert mean_table(values)["high"][0] > 1.0  # which is why
    import pandas as pd

    rows = [("acc", group, seed, values[seed, k]) for k, group in enumerate("ab") for seed in range(3)]
    tidy = pd.DataFrame(rows, columns=["metric", "group", "seed", "value"])
    made = compare_many(tidy, baseline="b", bounding={"acc": {"within": UNIT}})
    plain = compare_many(tidy, baseline="b")
    assert made["interval"].tolist() == ["t_logit"] * 2 and plain["interval"].tolist() == ["t"] * 2
    assert (made["high"][0], made["low"][0]) == (one.high, one.low)
    for column in ("difference", "difference_low", "difference_high", "p_value"):  # differences stay t
        assert made[column].equals(plain[column])
