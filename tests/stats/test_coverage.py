"""Do the intervals contain the truth as often as they say? Simulated studies, the method and the n named.

Each fast test simulates 5,000 studies through the very kernels that the public functions call; bounds of 93 and 97 %
are more than six standard errors (0.31 %) away from 95 %.
"""

from __future__ import annotations

import numpy as np
import pytest

from waterjar.stats import compare, hedges_g, holm, mean_interval, probability_of_improvement
from waterjar.stats.intervals import bca_bounds, bootstrap_bounds, t_bounds
from waterjar.stats.significance import difference_interval, paired_t, welch

TRIALS = 5000


def contained(bounds: tuple[np.ndarray, np.ndarray], truth: float) -> float:
    return float(np.mean((bounds[0] <= truth) & (truth <= bounds[1])))


@pytest.mark.parametrize("n", [3, 5, 10])
def test_t_at_3_5_10_normal_seeds(n: int) -> None:
    samples = np.random.default_rng(n).normal(0.7, 0.02, (TRIALS, n))
    assert 0.93 <= contained(t_bounds(samples, 0.95), 0.7) <= 0.97


@pytest.mark.parametrize("n", [10, 15, 20])
def test_bca_with_expanded_levels_from_10_normal_seeds(n: int) -> None:
    samples = np.random.default_rng(n).normal(0.7, 0.02, (TRIALS, n))
    assert 0.93 <= contained(bca_bounds(samples, 0.95, 1999, 1), 0.7) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 12, 30, 50])
def test_bca_with_expanded_levels_with_all_resamples(n: int) -> None:
    samples = np.random.default_rng(100 + n).normal(0.7, 0.02, (TRIALS, n))
    assert 0.93 <= contained(bca_bounds(samples, 0.95, 9999, 1), 0.7) <= 0.97


def test_bca_pays_where_data_are_skewed() -> None:
    samples = np.random.default_rng(0).exponential(1.0, (TRIALS, 20))
    assert contained(bca_bounds(samples, 0.95, 1999, 1), 1.0) > contained(t_bounds(samples, 0.95), 1.0) + 0.01


def test_the_kernel_that_was_simulated_is_the_one_that_is_called() -> None:
    sample = np.sort(np.random.default_rng(3).normal(size=12))
    interval = mean_interval(sample, method="bca", n_resamples=999, rng=4)
    assert (interval.low, interval.high) == tuple(float(x) for x in bca_bounds(sample, 0.95, 999, 4))


@pytest.mark.parametrize(("n", "low", "high"), [(3, 0.70, 0.80), (5, 0.90, 0.95), (10, 0.93, 0.97)])
def test_the_paired_bootstrap_is_short_where_its_note_says_so(n: int, low: float, high: float) -> None:
    samples = np.random.default_rng(n).normal(0.0, 1.0, (TRIALS, n))
    assert low <= contained(bootstrap_bounds(samples, 0.95, 1999, 1, "percentile"), 0.0) <= high


@pytest.mark.parametrize(
    ("n", "paired", "trials"),
    [
        (3, False, 1500),
        (5, True, 1500),
        pytest.param(5, False, 5000, marks=pytest.mark.slow),
        pytest.param(3, True, 5000, marks=pytest.mark.slow),
        pytest.param(10, False, 5000, marks=pytest.mark.slow),
        pytest.param(10, True, 5000, marks=pytest.mark.slow),
    ],
)
def test_welch_and_paired_t_hold_their_level(n: int, paired: bool, trials: int) -> None:
    generator = np.random.default_rng(17 * n + paired)
    shared = generator.normal(size=(trials, n)) if paired else np.zeros((trials, n))
    # Welch meets what it is for: one group has twice the spread.
    a = shared + generator.normal(size=(trials, n)) * (1.0 if paired else 2.0)
    b = shared + generator.normal(size=(trials, n))
    test = paired_t if paired else welch
    p = np.array([test(x, y, "two-sided").p_value for x, y in zip(a, b, strict=True)])
    level = np.mean(p <= 0.05)
    # Four standard errors above; Welch at n = 3 is known to be cautious.
    assert 0.02 <= level <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / trials)
    bounds = [difference_interval(x, y, paired, 0.95)[1:3] for x, y in zip(a, b, strict=True)]
    assert np.mean([low <= 0 <= high for low, high in bounds]) == pytest.approx(1 - level)
    assert compare(a[0], b[0], paired=paired).p_value == pytest.approx(p[0], rel=1e-9)


@pytest.mark.parametrize("test", ["permutation", "mann_whitney"])
def test_exact_tests_hold_their_level(test: str) -> None:
    generator = np.random.default_rng(8)
    p = [compare(*generator.normal(size=(2, 5)), test=test).p_value for _ in range(250)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 250)


def test_holm_holds_the_family_wise_level_and_single_tests_do_not() -> None:
    # Six metrics of two groups of 5 seeds, correlated by half, no true difference.
    generator = np.random.default_rng(2)
    trials, m = 800, 6
    wrong_raw, wrong_holm = 0, 0
    for _ in range(trials):
        common = generator.normal(size=(2, 1, 5))
        values = np.sqrt(0.5) * common + np.sqrt(0.5) * generator.normal(size=(2, m, 5))
        p = np.array([welch(values[0, k], values[1, k], "two-sided").p_value for k in range(m)])
        wrong_raw += bool((p <= 0.05).any())
        wrong_holm += bool((holm(p) <= 0.05).any())
    assert wrong_raw / trials > 0.10
    assert wrong_holm / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


@pytest.mark.slow
def test_holm_on_independent_uniform_p_comes_close_to_its_level() -> None:
    p = np.random.default_rng(5).uniform(size=(20_000, 8))
    wrong = np.mean([(holm(row) <= 0.05).any() for row in p])
    assert 0.045 <= wrong <= 0.0535  # exactly 1 - (1 - 0.05/8)^8 = 0.0489


@pytest.mark.parametrize("variant", ["g_s", "g_av", "g_z"])
@pytest.mark.parametrize("n", [3, 10])
def test_hedges_g_covers_and_is_unbiased(variant: str, n: int) -> None:
    generator = np.random.default_rng(n)
    true, correlation, trials = 0.8, 0.0 if variant == "g_s" else 0.5, 700
    z = generator.normal(size=(2, trials, n))
    a = z[0] + true
    b = correlation * z[0] + np.sqrt(1 - correlation**2) * z[1]
    scale = 1.0 if variant != "g_z" else np.sqrt(2 - 2 * correlation)
    results = [hedges_g(x, y, variant=variant) for x, y in zip(a, b, strict=True)]
    inside = np.mean([result.low <= true / scale <= result.high for result in results])
    assert 0.92 <= inside <= 0.975
    estimates = np.array([result.estimate for result in results])
    assert estimates.mean() == pytest.approx(true / scale, abs=4 * estimates.std() / np.sqrt(trials) + 0.03 * (n == 3))


@pytest.mark.parametrize(("n", "shift", "low"), [(3, 0.0, 0.87), (3, 1.0, 0.92), (10, 0.0, 0.93), (10, 2.0, 0.93)])
def test_probability_of_improvement_covers(n: int, shift: float, low: float) -> None:
    from scipy.stats import norm

    generator = np.random.default_rng(4)
    truth = float(norm.cdf(shift / np.sqrt(2)))
    trials = [probability_of_improvement(generator.normal(shift, 1, n), generator.normal(0, 1, n)) for _ in range(800)]
    assert low <= np.mean([trial.low <= truth <= trial.high for trial in trials]) <= 0.985
