"""Censored delays: by hand, against the area between Kaplan-Meier curves, against lifelines."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import kaplan_meier, mean_interval, restricted_mean, restricted_mean_difference

NO, YES = False, True


def area(curve: pd.DataFrame, limit: float) -> float:
    """Area under a step curve up to `limit`, summed step by step."""
    total = 0.0
    ends = [*curve["epoch"].tolist()[1:], math.inf]
    for start, end, share in zip(curve["epoch"], ends, curve["survival"], strict=True):
        total += max(0.0, min(end, limit) - min(start, limit)) * share
    return total


def test_kaplan_meier_by_hand() -> None:
    # Five runs: events at 2 and 5, one censored at 3, two censored at 8. 4/5, then 4/5 · 2/3.
    curve = kaplan_meier([2.0, 3.0, 5.0, 8.0, 8.0], [NO, YES, NO, YES, YES])
    assert curve["epoch"].tolist() == [0.0, 2.0, 3.0, 5.0, 8.0]
    assert curve["survival"].tolist() == pytest.approx([1.0, 0.8, 0.8, 8 / 15, 8 / 15])
    assert curve["at_risk"].tolist() == [5, 5, 4, 3, 2]
    assert curve["events"].tolist() == [0, 1, 0, 1, 0]
    assert curve["censored"].tolist() == [0, 0, 1, 0, 2]
    # Greenwood at 5: variance of log S = 1/(5·4) + 1/(3·2), on the log-log scale.
    s, variance = 8 / 15, 1 / 20 + 1 / 6
    width = 1.959964 * math.sqrt(variance) / abs(math.log(s))
    assert curve["low"][3] == pytest.approx(s ** math.exp(width), abs=1e-6)
    assert curve["high"][3] == pytest.approx(s ** math.exp(-width), abs=1e-6)


def test_an_event_before_training_starts_the_curve_lower() -> None:
    curve = kaplan_meier([0.0, 4.0], [NO, NO])
    assert curve["epoch"].tolist() == [0.0, 4.0] and curve["survival"].tolist() == [0.5, 0.0]


def test_kaplan_meier_leaves_out_and_counts_what_is_missing() -> None:
    curve = kaplan_meier([2.0, np.nan, 4.0], [NO, NO, NO])
    assert curve.attrs["n_missing"] == 1 and curve["at_risk"].tolist() == [2, 2, 1]
    with pytest.raises(WaterjarError, match="no delay is observed"):
        kaplan_meier([np.nan], [NO])


def test_restricted_mean_by_hand_and_by_area() -> None:
    epochs, censored = [4.0, 10.0, 7.0, 10.0], [NO, YES, NO, YES]
    result = restricted_mean(epochs, censored, limit=10.0)
    assert result.estimate == 31 / 4 == pytest.approx(area(kaplan_meier(epochs, censored), 10.0))
    assert (result.n, result.n_censored, result.limit) == (4, 2, 10.0)
    interval = mean_interval([4.0, 10.0, 7.0, 10.0])
    assert (result.low, result.high) == (interval.low, interval.high)
    assert (
        restricted_mean(epochs, censored, limit=6.0).estimate == 22 / 4 == float(restricted_mean(epochs, censored, 6))
    )


def test_all_censored_bounds_nothing() -> None:
    result = restricted_mean([10.0, 10.0, np.nan], [YES, YES, NO], limit=10.0)
    assert result.estimate == 10.0 and math.isnan(result.low) and math.isnan(result.high)
    assert "all 2 seeds are censored" in result.reason
    assert (result.n_missing, result.n_censored) == (1, 2)
    assert restricted_mean([], np.array([], dtype=bool), limit=3.0).as_row()["reason"]


def test_difference_by_hand_when_the_baseline_never_gets_there() -> None:
    # The case of the published table: scratch ends below tau, so all its delays are censored at 20.
    result = restricted_mean_difference([5.0, 7.0, 9.0], [NO] * 3, [20.0] * 3, [YES] * 3, method="t")
    assert result.estimate == -13.0
    assert (result.n_censored_cl, result.n_censored_s, result.limit) == (0, 3, 20.0)
    assert (result.mean_cl, result.mean_s) == (7.0, 20.0)
    expected = stats.ttest_1samp([-15.0, -13.0, -11.0], 0).confidence_interval()
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high))
    assert "paired t interval of 3 pairs" in result.note
    assert restricted_mean_difference([5.0, 7.0, 9.0], [NO] * 3, [20.0] * 3, [YES] * 3) == result
    bootstrap = restricted_mean_difference([5.0, 7.0, 9.0], [NO] * 3, [20.0] * 3, [YES] * 3, method="bootstrap")
    assert bootstrap.estimate == -13.0 == float(bootstrap)
    assert -15.0 <= bootstrap.low < -13.0 < bootstrap.high <= -11.0
    assert "method='t' does not" in bootstrap.note and bootstrap.reason == ""


def test_budgets_that_differ_are_cut_at_the_smaller() -> None:
    # CL ran 40 epochs and one run got there at 35; S ran 20 and one run never did: L = 20.
    result = restricted_mean_difference([10.0, 35.0], [NO, NO], [12.0, 20.0], [NO, YES], method="t")
    assert result.limit == 20.0
    assert result.estimate == ((10 - 12) + (20 - 20)) / 2
    shorter = restricted_mean_difference([10.0, 35.0], [NO, NO], [12.0, 20.0], [NO, YES], limit=11.0, method="t")
    assert shorter.estimate == ((10 - 11) + 0) / 2


def test_nothing_censored_is_the_plain_difference() -> None:
    result = restricted_mean_difference([5.0, 9.0], [NO, NO], [4.0, 6.0], [NO, NO])
    assert result.estimate == 2.0 and result.limit == 9.0


def test_neither_side_gets_there() -> None:
    result = restricted_mean_difference([20.0] * 3, [YES] * 3, [20.0] * 3, [YES] * 3)
    assert math.isnan(result.estimate) and math.isnan(result.low)
    assert "no run of either side" in result.reason
    assert (result.n_censored_cl, result.n_censored_s, result.mean_cl) == (3, 3, 20.0)


def test_equal_differences_have_no_width_and_a_note() -> None:
    result = restricted_mean_difference([5.0, 6.0], [NO, NO], [7.0, 8.0], [NO, NO])
    assert result.low == result.high == result.estimate == -2.0 and "does not show" in result.note


def test_one_pair_and_none() -> None:
    one = restricted_mean_difference([5.0], [NO], [7.0], [NO])
    assert one.estimate == -2.0 and math.isnan(one.low) and "one pair" in one.reason
    none = restricted_mean_difference([5.0], [NO], [np.nan], [NO])
    assert math.isnan(none.estimate) and math.isnan(none.limit) and none.n_missing == 1 and "no pair" in none.reason


def test_pairs_are_made_by_seed() -> None:
    result = restricted_mean_difference(
        [5.0, 9.0, 1.0], [NO] * 3, [20.0, 6.0], [YES, NO], seeds_cl=[1, 2, 3], seeds_s=[2, 1], method="t"
    )
    assert result.estimate == ((5 - 6) + (9 - 20)) / 2
    assert (result.n, result.n_unmatched) == (2, 1)


def test_from_ten_pairs_on_it_is_bca_and_says_so() -> None:
    generator = np.random.default_rng(0)
    cl, s = generator.uniform(1, 9, 10), generator.uniform(5, 20, 10)
    result = restricted_mean_difference(cl, [NO] * 10, s, [NO] * 10)
    assert "BCa" in result.note and result.method == "paired_bca_expanded"
    both = mean_interval(cl - s, method="bca")
    assert (result.low, result.high) == (both.low, both.high)
    plain = restricted_mean_difference(cl, [NO] * 10, s, [NO] * 10, method="bootstrap")
    assert plain.note == "bootstrap of 10 pairs" and plain.low < plain.estimate < plain.high
    assert result == restricted_mean_difference(cl[::-1], [NO] * 10, s[::-1], [NO] * 10)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=8),
    st.integers(1, 20),
)
@settings(deadline=None)
def test_the_area_between_the_curves_when_all_share_one_budget(delays: list[tuple[int, int]], budget: int) -> None:
    raw = np.array(delays, dtype=float)
    censored = raw > budget
    epochs = np.minimum(raw, budget)
    result = restricted_mean_difference(
        epochs[:, 0], censored[:, 0], epochs[:, 1], censored[:, 1], limit=budget, method="t"
    )
    curves = [area(kaplan_meier(epochs[:, side], censored[:, side]), budget) for side in (0, 1)]
    if censored.all():
        assert math.isnan(result.estimate)
    else:
        assert result.estimate == pytest.approx(curves[0] - curves[1], abs=1e-9)
    assert (result.mean_cl, result.mean_s) == pytest.approx(tuple(curves), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: restricted_mean([5.0, 9.0], [YES, NO], limit=8.0), "beyond 1 censored delays.*Take limit=5.0"),
        (lambda: restricted_mean([5.0, 9.0], [1, 0], limit=8.0), "one True or False per seed"),
        (lambda: restricted_mean([5.0, 9.0], [YES], limit=8.0), "one True or False per seed"),
        (lambda: restricted_mean([5.0, math.inf], [NO, NO], limit=8.0), "is censored"),
        (lambda: restricted_mean([-1.0], [NO], limit=8.0), "from 0 on"),
        (lambda: restricted_mean_difference([1.0], [NO], [1.0, 2.0], [NO, NO]), "1 against 2 delays"),
        (lambda: restricted_mean_difference([1.0], [NO], [1.0], [NO], seeds_s=[1]), "of both sides"),
        (lambda: restricted_mean_difference([1.0], [NO], [1.0], [NO], method="bcaa"), "method 'bcaa' is unknown"),
        (lambda: restricted_mean_difference([1.0], [NO], [1.0], [NO], method="bca"), "needs at least 10 pairs"),
    ],
)
def test_what_cannot_be(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(WaterjarError, match=words):
        call()


@pytest.mark.oracle
def test_lifelines_gives_the_same_curve_and_area() -> None:
    lifelines = pytest.importorskip("lifelines")
    from lifelines.utils import restricted_mean_survival_time

    generator = np.random.default_rng(2)
    raw = generator.exponential(12, 25).round(1)
    censored, epochs = raw > 20, np.minimum(raw, 20.0)
    fitter = lifelines.KaplanMeierFitter().fit(epochs, ~censored)
    curve = kaplan_meier(epochs, censored)
    theirs = fitter.survival_function_["KM_estimate"]
    assert curve["epoch"].tolist() == theirs.index.tolist()
    assert curve["survival"].to_numpy() == pytest.approx(theirs.to_numpy(), rel=1e-10)
    bounds = fitter.confidence_interval_survival_function_.to_numpy()
    drawn = (curve["survival"] < 1).to_numpy() & (curve["survival"] > 0).to_numpy()
    assert curve["low"].to_numpy()[drawn] == pytest.approx(bounds[drawn, 0], rel=1e-6)
    assert curve["high"].to_numpy()[drawn] == pytest.approx(bounds[drawn, 1], rel=1e-6)
    assert restricted_mean(epochs, censored, 20.0).estimate == pytest.approx(
        restricted_mean_survival_time(fitter, t=20.0)
    )
