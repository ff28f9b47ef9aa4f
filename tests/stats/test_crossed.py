"""Means over seeds and samples: against a hand computation, scipy's t and binomial, and simulated studies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from waterjar import WaterjarError
from waterjar.stats import crossed_interval


def covered(seeds: int, samples: int, of_seed: float, level: float, studies: int) -> float:
    """How often the interval holds the truth: a probit with effects of seeds, of samples and of neither."""
    rng = np.random.default_rng([seeds, samples, int(100 * of_seed), int(100 * level)])
    spread = np.sqrt(1 + 1 + of_seed**2)
    shift = scipy.stats.norm.ppf(level) * spread
    hits = 0
    for _ in range(studies):
        table = (
            shift + of_seed * rng.normal(size=(seeds, 1)) + rng.normal(size=samples) + rng.normal(size=(seeds, samples))
        )
        found = crossed_interval((table > 0).astype(float), within=(0, 1))
        hits += found.low <= level <= found.high
    return hits / studies


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("samples", [100, 1000])
@pytest.mark.parametrize("of_seed", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("level", [0.6, 0.9])
def test_coverage(seeds: int, samples: int, of_seed: float, level: float) -> None:
    found = covered(seeds, samples, of_seed, level, 1000)
    print(f"{seeds} seeds, {samples} samples, seeds {of_seed}, accuracy {level}: {found:.3f}")
    assert 0.92 <= found <= 0.99


def test_coverage_of_a_few_studies() -> None:
    assert 0.9 <= covered(5, 200, 0.2, 0.7, 200) <= 1.0


def test_seeds_pooled_as_independent_would_be_too_sure() -> None:
    """Every seed answers alike: five of them say no more than one."""
    answers = np.tile(np.arange(100) < 70, (5, 1)) ^ (np.random.default_rng(0).random((5, 100)) < 0.01)
    found = crossed_interval(answers.astype(float), within=(0, 1))
    pooled = scipy.stats.binomtest(int(answers.sum()), answers.size).proportion_ci()
    alone = scipy.stats.binomtest(70, 100).proportion_ci(method="wilson")
    assert found.high - found.low > 1.8 * (pooled.high - pooled.low)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.1)
    assert found.seed_share < 0.1


def test_by_hand() -> None:
    table = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]])
    rows, columns, mean = table.mean(1), table.mean(0), table.mean()
    of_seeds = 3 * ((rows - mean) ** 2).sum() / 1
    of_samples = 2 * ((columns - mean) ** 2).sum() / 2
    rest = ((table - rows[:, None] - columns + mean) ** 2).sum() / 2
    variance = (of_seeds + of_samples - rest) / 6
    df = (of_seeds + of_samples - rest) ** 2 / (of_seeds**2 / 1 + of_samples**2 / 2 + rest**2 / 2)
    half = scipy.stats.t.ppf(0.975, df) * np.sqrt(variance)
    found = crossed_interval(table)
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half))
    assert found.df == pytest.approx(df)


def test_without_effects_of_samples_it_is_the_t_interval_over_seeds() -> None:
    """All of the variance between seeds: the interval is Student's over their means."""
    means = np.array([0.1, 0.5, 0.4, 0.9])
    found = crossed_interval(np.tile(means[:, None], (1, 7)))
    low, high = scipy.stats.t.interval(0.95, 3, means.mean(), scipy.stats.sem(means))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.seed_share == 1.0


def test_edges() -> None:
    one = crossed_interval(np.ones((1, 5)))
    assert np.isnan(one.low) and "two of each" in one.reason
    whole = crossed_interval(np.ones((3, 50)), within=(0, 1))
    assert whole.high == 1.0
    assert whole.low == pytest.approx(scipy.stats.binomtest(50, 50).proportion_ci().low)  # Clopper and Pearson
    none = crossed_interval(np.zeros((3, 50)), within=(0, 1))
    assert (none.low, none.high) == (0.0, pytest.approx(1 - whole.low))
    assert np.isnan(crossed_interval(np.ones((3, 5))).low)
    with pytest.raises(WaterjarError, match=r"expected finite numbers \(seed, sample\)"):
        crossed_interval([[1.0, np.nan]])


@given(arrays.arrays(np.bool_, st.tuples(st.integers(2, 6), st.integers(2, 20))))
def test_it_stays_inside_and_does_not_ask_for_an_order(table: np.ndarray) -> None:
    found = crossed_interval(table.astype(float), within=(0, 1))
    if found.reason:
        return
    assert 0.0 <= found.low <= found.estimate + 1e-12
    assert found.estimate - 1e-12 <= found.high <= 1.0
    turned = crossed_interval(table[::-1, ::-1].astype(float), within=(0, 1))
    assert (turned.low, turned.high) == pytest.approx((found.low, found.high))
