"""TOST by scipy's one-sided tests, against statsmodels, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import tost

A = np.array([0.70, 0.73, 0.71, 0.74, 0.69])
B = np.array([0.71, 0.72, 0.70, 0.73, 0.71])


@pytest.mark.parametrize("paired", [True, False])
def test_two_one_sided_tests_of_scipy(paired: bool) -> None:
    result = tost(A, B, margin=0.02, paired=paired)
    if paired:
        lower = stats.ttest_rel(A + 0.02, B, alternative="greater").pvalue
        upper = stats.ttest_rel(A - 0.02, B, alternative="less").pvalue
    else:
        lower = stats.ttest_ind(A + 0.02, B, equal_var=False, alternative="greater").pvalue
        upper = stats.ttest_ind(A - 0.02, B, equal_var=False, alternative="less").pvalue
    assert (result.p_lower, result.p_upper) == pytest.approx((lower, upper))
    assert result.p_value == max(result.p_lower, result.p_upper)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("margin", [0.005, 0.01, 0.015, 0.02, 0.03, 0.05])
def test_equivalent_means_that_the_interval_lies_inside(margin: float, paired: bool) -> None:
    result = tost(A, B, margin=margin, paired=paired)
    assert result.equivalent == (-margin < result.low and result.high < margin)


def test_an_uneven_margin() -> None:
    result = tost(A, B, margin=(-0.01, 0.5), paired=True)
    assert (result.margin_low, result.margin_high) == (-0.01, 0.5)
    assert result.p_value == result.p_lower == tost(A, B, margin=0.01, paired=True).p_lower


def test_the_level_holds_at_the_margin() -> None:
    # A true difference of exactly the margin is called equivalent in 5 % of studies at most.
    generator = np.random.default_rng(0)
    claims = [
        tost(generator.normal(1.5, 1, 8), generator.normal(0, 1, 8), margin=1.5, paired=False).equivalent
        for _ in range(1000)
    ]
    assert 0.03 <= np.mean(claims) <= 0.07


def test_missing_seeds_are_counted() -> None:
    result = tost([*A, np.nan], [*B, 0.7], margin=0.02, paired=True)
    assert (result.n_a, result.n_b, result.n_missing) == (5, 5, 1)
    assert result.p_value == tost(A, B, margin=0.02, paired=True).p_value


@pytest.mark.parametrize(
    ("a", "b", "reason"), [([1.0], [1.0], "one value"), ([1.0, 1.0], [1.0, 1.0], "no spread"), ([], [], "no value")]
)
@pytest.mark.parametrize("paired", [True, False])
def test_no_answer_comes_with_a_reason(a: list[float], b: list[float], reason: str, paired: bool) -> None:
    result = tost(a, b, margin=1.0, paired=paired)
    assert math.isnan(result.p_value) and not result.equivalent and reason in result.reason
    assert result.as_row()["reason"] == result.reason


@pytest.mark.parametrize("margin", [0.0, -1.0, (2.0, 1.0)])
def test_an_empty_margin(margin: float | tuple[float, float]) -> None:
    with pytest.raises(WaterjarError, match="is empty"):
        tost(A, B, margin=margin, paired=True)


@pytest.mark.oracle
def test_statsmodels_tost() -> None:
    weighted = pytest.importorskip("statsmodels.stats.weightstats")
    p, _, _ = weighted.ttost_ind(A, B, -0.01, 0.02, usevar="unequal")
    assert tost(A, B, margin=(-0.01, 0.02), paired=False).p_value == pytest.approx(p, rel=1e-10)
    p, _, _ = weighted.ttost_paired(A, B, -0.01, 0.02)
    assert tost(A, B, margin=(-0.01, 0.02), paired=True).p_value == pytest.approx(p, rel=1e-10)
