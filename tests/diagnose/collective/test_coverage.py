"""Do intervals over samples cover what they say? Simulated networks on fresh samples, the truth known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from waterjar.diagnose.collective.coalitions import cached_game
from waterjar.diagnose.collective.contributions import bounds
from waterjar.diagnose.collective.resampling import percentile_bounds, resampled_accuracies

EQUAL, DIFFERENT, MANY = (0.9, (0.8, 0.8, 0.8)), (0.85, (0.84, 0.8, 0.6)), (0.97, (0.95,) * 5)


def answers(rng: np.random.Generator, n: int, collective: float, streams: tuple[float, ...]) -> np.ndarray:
    """(sample, 1 + streams): right or wrong, with what all find hard in common."""
    width = len(streams) + 1
    common = np.sqrt(0.5) * rng.normal(size=(n, 1)) + np.sqrt(0.5) * rng.normal(size=(n, width))
    return (common < special.ndtri(np.array([collective, *streams]))).astype(float)


def covered(n: int, accuracies: tuple[float, tuple[float, ...]], best: int | None, studies: int) -> float:
    collective, streams = accuracies
    truth, rng = collective / max(streams), np.random.default_rng(5)
    hits = 0
    for _ in range(studies):
        right = answers(rng, n, collective, streams)
        drawn = resampled_accuracies(right[:, 0], right[:, 1:], best, resamples=300, seed=int(rng.integers(2**31)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = drawn[:, 0] / drawn[:, 1]
        means = right.mean(0)
        chosen = means[1:].max() if best is None else means[1 + best]
        low, high = percentile_bounds(ratios, float(means[0] / chosen), 0.95)
        hits += low <= truth <= high
    return hits / studies


@pytest.mark.slow
@pytest.mark.parametrize("best", [0, None])
@pytest.mark.parametrize("accuracies", [EQUAL, DIFFERENT, MANY])
@pytest.mark.parametrize(("n", "studies"), [(100, 600), (1000, 400)])
def test_the_ratio(n: int, studies: int, accuracies: tuple[float, tuple[float, ...]], best: int | None) -> None:
    assert 0.92 <= covered(n, accuracies, best, studies) <= 0.995


def test_the_ratio_of_equals_in_short() -> None:
    assert 0.90 <= covered(100, EQUAL, None, 120) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["accuracy", "log_likelihood"])
def test_shapley_values(kind: str) -> None:
    """Three streams of known quality; the truth is that of 200,000 samples."""

    def shares(rng: np.random.Generator, n: int) -> np.ndarray:
        labels = rng.integers(3, size=n)
        labels[:3] = 0, 1, 2
        logits = rng.normal(size=(n, 3, 3)) + np.array([0.5, 1.0, 2.0])[:, None] * np.eye(3)[labels][:, None]
        return cached_game(logits, labels, "mean_probability").shapley(kind)[0]

    rng = np.random.default_rng(0)
    truth = shares(rng, 200_000).mean(1)
    hits = np.zeros(3)
    for _ in range(500):
        low, high = bounds(shares(rng, 300), 0.0, 0.95)
        hits += (low <= truth) & (truth <= high)
    assert ((hits / 500 > 0.915) & (hits / 500 < 0.985)).all(), hits / 500
