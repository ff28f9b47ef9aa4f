"""Effect sizes by hand, against the noncentral t, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import hedges_g, probability_of_improvement
from waterjar.stats.effects import noncentrality_bounds, small_sample_factor


def test_g_s_by_hand() -> None:
    # Means 4 and 2, both variances 1: d = 2. J(4) = Γ(2)/(√2 Γ(1.5)) = 1/(√2 · √π/2) = √(2/π).
    g = hedges_g([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    assert g.estimate == pytest.approx(2 * math.sqrt(2 / math.pi))
    # Each bound puts the observed t = 2 · √(9/6) at 2.5 % of its noncentral t distribution.
    t, scale = 2 * math.sqrt(1.5), math.sqrt(1.5)
    assert stats.nct.sf(t, 4, g.low * scale) == pytest.approx(0.025, abs=1e-7)
    assert stats.nct.cdf(t, 4, g.high * scale) == pytest.approx(0.025, abs=1e-7)


def test_g_s_with_unequal_sizes() -> None:
    a, b = np.array([1.0, 4.0]), np.array([0.0, 1.0, 2.0, 1.0])
    pooled = math.sqrt((4.5 + 2.0) / 4)  # sums of squares 4.5 and 2, df 4
    assert hedges_g(a, b).estimate == pytest.approx((2.5 - 1.0) / pooled * small_sample_factor(4))


def test_g_av_and_g_z_by_hand() -> None:
    a, b = [1.0, 2.0, 4.0], [0.0, 2.0, 1.0]
    # differences 1, 0, 3: mean 4/3, variance 7/3. Variances 7/3 and 1: s² = 5/3; covariance 1/2, r = 0.3.
    z = hedges_g(a, b, variant="g_z")
    assert z.estimate == pytest.approx((4 / 3) / math.sqrt(7 / 3) * small_sample_factor(2))
    av = hedges_g(a, b, variant="g_av")
    assert av.estimate == pytest.approx((4 / 3) / math.sqrt(5 / 3) * small_sample_factor(4 / 1.09))
    ratio = math.sqrt(7 / 3) / math.sqrt(5 / 3)
    assert (av.low, av.high) == pytest.approx((z.low * ratio, z.high * ratio))
    t = (4 / 3) / math.sqrt(7 / 9)
    assert stats.nct.sf(t, 2, z.low * math.sqrt(3)) == pytest.approx(0.025, abs=1e-7)


def test_the_factor_tends_to_one_and_to_the_usual_approximation() -> None:
    assert small_sample_factor(50) == pytest.approx(1 - 3 / (4 * 50 - 1), abs=2e-5)
    assert small_sample_factor(1e6) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("df", [2, 4, 18])
@pytest.mark.parametrize("sign", [1, -1])
def test_large_t_continues_smoothly(df: int, sign: int) -> None:
    below = np.array(noncentrality_bounds(sign * 999.0, df, 0.95)) / 999
    above = np.array(noncentrality_bounds(sign * 1001.0, df, 0.95)) / 1001
    assert below == pytest.approx(above, rel=2e-3)
    assert above[0] < above[1]


@given(st.floats(-200, 200).map(lambda t: round(t, 6)), st.floats(1, 300), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None)
def test_the_bounds_solve_their_equation(t: float, df: float, confidence: float) -> None:
    low, high = noncentrality_bounds(t, df, confidence)
    tail = (1 - confidence) / 2
    assert low < high
    assert stats.nct.cdf(t, df, high) == pytest.approx(tail, abs=1e-6)
    assert stats.nct.cdf(t, df, low) == pytest.approx(1 - tail, abs=1e-6)
    mirrored = noncentrality_bounds(-t, df, confidence)
    assert mirrored == pytest.approx((-high, -low), abs=1e-6)


def test_the_bounds_where_scipys_inverse_is_off() -> None:
    # At 99 % and a small t scipy's inverse gives ±2.58 for what is nearly ±2.576 + t.
    low, high = noncentrality_bounds(0.03, 433, 0.99)
    assert (low, high) == pytest.approx((0.03 - 2.5758, 0.03 + 2.5758), abs=2e-4)


def test_improvement_by_hand() -> None:
    # Of nine pairs, 3 > {1, 2} and = 3; 4 and 5 beat all: 2.5 + 3 + 3 = 8.5.
    assert probability_of_improvement([3.0, 4.0, 5.0], [1.0, 2.0, 3.0]).estimate == pytest.approx(8.5 / 9)
    paired = probability_of_improvement([3.0, 4.0, 5.0, 1.0], [1.0, 4.0, 3.0, 9.0], paired=True)
    assert paired.estimate == pytest.approx(2.5 / 4)
    assert paired.method == "improvement_wilson"


def test_improvement_is_mann_whitneys_u() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, 6, 7).astype(float), generator.integers(0, 6, 9).astype(float)
    expected = stats.mannwhitneyu(a, b).statistic / 63
    assert probability_of_improvement(a, b).estimate == pytest.approx(expected)


def test_newcombes_bounds_solve_his_equation() -> None:
    a, b = [2.0, 4.0, 6.0, 8.0], [1.0, 3.0, 5.0]
    p = probability_of_improvement(a, b)
    k, z = 2.5, stats.norm.isf(0.025)
    for theta in (p.low, p.high):
        variance = theta * (1 - theta) * (1 + k * (1 - theta) / (2 - theta) + k * theta / (1 + theta)) / 12
        assert abs(p.estimate - theta) == pytest.approx(z * math.sqrt(variance), rel=1e-6)


def test_a_clean_win_keeps_a_width_and_mirrors() -> None:
    win, loss = probability_of_improvement([5.0, 6.0], [1.0, 2.0]), probability_of_improvement([1.0, 2.0], [5.0, 6.0])
    assert (win.estimate, win.high) == (1.0, 1.0) and 0.2 < win.low < 0.7
    assert (loss.estimate, loss.low) == (0.0, 0.0) and loss.high == pytest.approx(1 - win.low)


@pytest.mark.parametrize(("wins", "n"), [(0, 3), (2, 3), (7, 10), (10, 10)])
def test_wilson_is_that_of_scipy(wins: int, n: int) -> None:
    a = np.array([1.0] * wins + [-1.0] * (n - wins))
    ours = probability_of_improvement(a, np.zeros(n), paired=True, confidence=0.9)
    expected = stats.binomtest(wins, n).proportion_ci(0.9, "wilson")
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "variant", "reason"),
    [
        ([1.0], [1.0, 2.0], "g_s", "a: one value"),
        ([1.0, 2.0], [], "g_s", "b: no value"),
        ([1.0, 1.0], [2.0, 2.0], "g_s", "neither group has any spread"),
        ([1.0, 2.0], [2.0, 5.0], "g_av", "at least 3"),
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], "g_av", "neither group has any spread"),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "g_z", "all differences are equal"),
        ([1.0, 2.0, np.inf], [2.0, 3.0, 4.0], "g_z", "infinite"),
    ],
)
def test_no_effect_comes_with_a_reason(a: list[float], b: list[float], variant: str, reason: str) -> None:
    g = hedges_g(a, b, variant=variant)
    assert math.isnan(g.estimate) and math.isnan(g.low) and math.isnan(g.high)
    assert reason in g.reason


def test_g_av_of_equal_differences_has_an_estimate_without_bounds() -> None:
    g = hedges_g([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], variant="g_av")
    # s = 1, r = 1, df = 2: -J(2) = -Γ(1)/Γ(0.5) = -1/√π
    assert g.estimate == pytest.approx(-1 / math.sqrt(math.pi))
    assert math.isnan(g.low) and "no scale" in g.reason


@pytest.mark.parametrize("paired", [True, False])
def test_no_improvement_without_values(paired: bool) -> None:
    result = probability_of_improvement([float("nan")], [1.0], paired=paired)
    assert math.isnan(result.estimate) and result.reason and result.n_missing == 1


def test_unknown_variant() -> None:
    with pytest.raises(WaterjarError, match="variant 'g_a' is unknown: did you mean 'g_av'"):
        hedges_g([1.0, 2.0], [1.0, 3.0], variant="g_a")


@pytest.mark.oracle
def test_statsmodels_effectsize_smd() -> None:
    meta = pytest.importorskip("statsmodels.stats.meta_analysis")
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    expected, _ = meta.effectsize_smd(a.mean(), a.std(ddof=1), 12, b.mean(), b.std(ddof=1), 12)
    # statsmodels takes the approximation of J.
    assert hedges_g(a, b).estimate == pytest.approx(expected, rel=1e-3)
