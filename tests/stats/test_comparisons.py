"""Two groups: against scipy, by enumeration in the test, and at the edges where scipy warns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import compare, smallest_exact_p

A = [0.81, 0.84, 0.80, 0.79, 0.86]
B = [0.78, 0.80, 0.81, 0.74, 0.77]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_welch_is_that_of_scipy(alternative: str) -> None:
    ours = compare(A, B, alternative=alternative)
    theirs = stats.ttest_ind(A, B, equal_var=False, alternative=alternative)
    assert (ours.test_statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)
    expected = stats.ttest_ind(A, B, equal_var=False).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), rel=1e-10)
    assert ours.test == "welch" and not ours.paired and (ours.n_a, ours.n_b) == (5, 5)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_paired_t_is_that_of_scipy(alternative: str) -> None:
    ours = compare(A, B, paired=True, alternative=alternative, alpha=0.1)
    theirs = stats.ttest_rel(A, B, alternative=alternative)
    assert (ours.test_statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)
    expected = stats.ttest_rel(A, B).confidence_interval(0.9)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), rel=1e-10)
    assert ours.test == "paired_t" and ours.effect_name == "g_av"


def test_permutation_by_enumeration() -> None:
    a, b = [4.0, 9.0, 7.0], [5.0, 1.0, 6.0, 2.0]
    pooled = np.array(a + b)
    seen = pooled[:3].mean() - pooled[3:].mean()
    means = []
    for chosen in itertools.combinations(range(7), 3):
        rest = [i for i in range(7) if i not in chosen]
        means.append(pooled[list(chosen)].mean() - pooled[rest].mean())
    greater = np.mean(np.array(means) >= seen - 1e-12)
    less = np.mean(np.array(means) <= seen + 1e-12)
    assert compare(a, b, test="permutation", alternative="greater").p_value == pytest.approx(greater)
    assert compare(a, b, test="permutation").p_value == pytest.approx(2 * min(greater, less))


def test_paired_permutation_by_enumeration() -> None:
    differences = np.array([1.0, -0.5, 2.0, 3.0])
    means = np.array([np.mean(differences * signs) for signs in itertools.product([1, -1], repeat=4)])
    expected = 2 * np.mean(means >= differences.mean() - 1e-12)
    ours = compare(differences + 5, np.full(4, 5.0), paired=True, test="permutation")
    assert ours.p_value == pytest.approx(expected)
    assert "exact over 16" in ours.note


def test_three_against_three_cannot_get_below_a_tenth_and_three_pairs_not_below_a_quarter() -> None:
    clear = ([10.0, 11.0, 12.0], [1.0, 2.0, 3.5])
    for test in ("permutation", "mann_whitney"):
        result = compare(*clear, test=test)
        assert (result.p_value, result.smallest_p, result.significant) == (pytest.approx(0.1), 0.1, False)
    for test in ("permutation", "wilcoxon"):
        result = compare(*clear, paired=True, test=test)
        assert (result.p_value, result.smallest_p) == (0.25, 0.25)
    welch = compare(*clear)
    assert (welch.smallest_p, welch.smallest_exact_p) == (0.0, 0.1) and welch.significant
    assert compare(*clear, paired=True).smallest_exact_p == 0.25


@pytest.mark.parametrize(
    ("n_a", "n_b", "paired", "alternative", "expected"),
    [
        (3, 3, False, "two-sided", 0.1),
        (3, 3, False, "greater", 0.05),
        (4, 4, False, "two-sided", 2 / 70),
        (3, 5, False, "two-sided", 2 / 56),
        (1, 1, False, "two-sided", 1.0),
        (6, None, True, "two-sided", 2 / 64),
        (5, None, True, "less", 1 / 32),
        (0, 3, False, "two-sided", float("nan")),
    ],
)
def test_the_floor_of_a_design(n_a: int, n_b: int | None, paired: bool, alternative: str, expected: float) -> None:
    floor = smallest_exact_p(n_a, n_b, paired=paired, alternative=alternative)
    assert floor == pytest.approx(expected, nan_ok=True)


def test_random_arrangements_have_the_floor_of_their_number() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(5, 1, 12), generator.normal(0, 1, 12)
    result = compare(a, b, test="permutation", n_resamples=999, rng=1)
    assert "999 random" in result.note
    assert result.p_value == result.smallest_p == 2 / 1000
    assert result.p_value == compare(a[::-1], b, test="permutation", n_resamples=999, rng=1).p_value


def test_mann_whitney_without_and_with_ties() -> None:
    exact = compare(A, np.array(B) + 0.001, test="mann_whitney")
    theirs = stats.mannwhitneyu(A, np.array(B) + 0.001, method="exact")
    assert (exact.test_statistic, exact.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    # With ties: all 20 arrangements counted here.
    a, b = [1.0, 2.0, 2.0], [2.0, 3.0, 4.0]
    ranks = stats.rankdata(a + b)
    sums = np.array([sum(ranks[list(chosen)]) for chosen in itertools.combinations(range(6), 3)])
    expected = 2 * np.mean(sums <= ranks[:3].sum() + 1e-9)
    tied = compare(a, b, test="mann_whitney")
    assert tied.p_value == pytest.approx(expected)
    assert "because of ties" in tied.note


def test_mann_whitney_of_many_tied_values_is_approximate_and_says_so() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 5, 30).astype(float), generator.integers(1, 6, 30).astype(float)
    result = compare(a, b, test="mann_whitney")
    assert result.p_value == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue)
    assert (result.note, result.smallest_p) == ("normal approximation", 0.0)
    same = compare(np.ones(30), np.ones(30), test="mann_whitney")
    assert same.p_value == 1.0 and "identical" in same.note


def test_wilcoxon_exact_tied_and_many() -> None:
    exact = compare(A, np.array(B) + 0.0013 * np.arange(5), test="wilcoxon")
    theirs = stats.wilcoxon(A, np.array(B) + 0.0013 * np.arange(5), method="exact")
    assert (exact.paired, exact.p_value) == (True, pytest.approx(theirs.pvalue))
    # Ties and an equal pair: differences 1, 1, 2, 0 leave three signs, 2 · 1/8.
    tied = compare([2.0, 3.0, 5.0, 4.0], [1.0, 2.0, 3.0, 4.0], test="wilcoxon")
    assert (tied.p_value, tied.smallest_p) == (0.25, 0.25)
    assert "because of ties" in tied.note and "1 equal pairs left out" in tied.note
    generator = np.random.default_rng(3)
    d = generator.integers(-3, 5, 40).astype(float)
    many = compare(d, np.zeros(40), test="wilcoxon")
    assert many.p_value == pytest.approx(stats.wilcoxon(d[d != 0], method="asymptotic").pvalue)
    assert many.note.startswith("normal approximation")


def test_identical_values_give_one() -> None:
    for test in ("welch", "paired_t", "mann_whitney", "wilcoxon", "permutation"):
        result = compare([0.5] * 4, [0.5] * 4, test=test)
        assert (result.p_value, result.difference, result.significant) == (1.0, 0.0, False), test
        assert (result.low, result.high, result.improvement) == (0.0, 0.0, 0.5)
        assert math.isnan(result.effect_size) and "nothing to standardise by" in result.reason
    same = compare(A, A, paired=True)
    assert (same.p_value, same.difference, same.effect_size) == (1.0, 0.0, 0.0)


def test_no_spread_but_a_difference() -> None:
    welch = compare([0.3, 0.3, 0.1 + 0.2], [0.5, 0.5, 0.5])
    assert math.isnan(welch.p_value) and not welch.significant
    assert "no scale" in welch.reason
    assert welch.low == welch.high == welch.difference == pytest.approx(-0.2)
    paired = compare([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], paired=True)
    assert math.isnan(paired.p_value) and "all differences are equal" in paired.reason
    assert compare([0.3] * 3, [0.5] * 3, test="permutation").p_value == pytest.approx(0.1)


def test_one_constant_group_is_fine() -> None:
    result = compare([1.0, 1.0, 1.0], [0.2, 0.5, 0.4])
    spread = np.std([0.2, 0.5, 0.4], ddof=1)
    assert result.test_statistic == pytest.approx((1 - np.mean([0.2, 0.5, 0.4])) / (spread / math.sqrt(3)))
    assert result.p_value == pytest.approx(2 * stats.t.sf(result.test_statistic, 2))


@pytest.mark.parametrize("test", ["welch", "paired_t", "mann_whitney", "wilcoxon", "permutation"])
def test_one_seed_each(test: str) -> None:
    result = compare([2.0], [1.0], test=test)
    assert result.difference == 1.0
    assert math.isnan(result.low) and math.isnan(result.effect_size) and "one value" in result.reason
    assert math.isnan(result.p_value) and not result.significant
    assert result.smallest_exact_p == 1.0


@pytest.mark.parametrize("test", ["welch", "paired_t", "permutation"])
def test_nothing_observed(test: str) -> None:
    result = compare([float("nan")] * 2, [1.0, 2.0], test=test)
    assert math.isnan(result.p_value) and math.isnan(result.difference) and math.isnan(result.mean_a)
    assert result.n_missing == 2 and "no value" in result.reason and not result.significant


def test_infinite_values_have_no_test() -> None:
    result = compare([1.0, float("inf")], [1.0, 2.0])
    assert math.isnan(result.p_value) and math.isnan(result.difference) and "infinite" in result.reason


def test_a_missing_seed_goes_with_its_partner() -> None:
    with_gap = compare([*A, float("nan")], [*B, 0.9], paired=True)
    without = compare(A, B, paired=True)
    assert with_gap.n_missing == 1
    assert with_gap.p_value == without.p_value and with_gap.n_a == 5


def test_row_has_the_keys_of_the_seed() -> None:
    result = compare(A, B)
    assert {"test_statistic", "p_value", "effect_size", "significant"} <= set(result.as_row())
    assert float(result) == result.difference


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"test": "welsh"}, "did you mean 'welch'"),
        ({"test": "welch", "paired": True}, "does not fit a paired design.*paired_t, wilcoxon"),
        ({"test": "wilcoxon", "paired": False}, "does not fit independent groups.*mann_whitney"),
        ({"alternative": "larger"}, "alternative 'larger' is unknown"),
        ({"alpha": 5}, "alpha=5 is impossible"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        compare(A, B, **settings)  # type: ignore[arg-type]


def test_a_paired_design_needs_pairs() -> None:
    with pytest.raises(WaterjarError, match="5 against 2 values. Join them with pair_by_seed"):
        compare(A, [1.0, 2.0], paired=True)


@pytest.mark.oracle
def test_statsmodels_welch() -> None:
    weighted = pytest.importorskip("statsmodels.stats.weightstats")
    statistic, p, _ = weighted.ttest_ind(np.array(A), np.array(B), usevar="unequal")
    ours = compare(A, B)
    assert (ours.test_statistic, ours.p_value) == pytest.approx((statistic, p), rel=1e-10)
    means = weighted.CompareMeans(weighted.DescrStatsW(A), weighted.DescrStatsW(B))
    assert (ours.low, ours.high) == pytest.approx(means.tconfint_diff(usevar="unequal"), rel=1e-10)


def test_against_a_side_without_spread_the_effect_is_that_of_the_differences() -> None:
    a = np.array([0.1, 0.3, 0.2, 0.4])
    result = compare(a, np.zeros(4), paired=True)
    assert result.effect_name == "g_z"
    correction = 1 - 3 / (4 * 3 - 1)  # Hedges' small-sample factor, to second order
    assert result.effect_size == pytest.approx(correction * a.mean() / a.std(ddof=1), rel=0.02)
