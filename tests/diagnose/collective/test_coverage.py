"""Do intervals over samples cover what they say? Simulated networks on fresh samples, the truth known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from waterjar.diagnose.collective.coalitions import Game, cached_game, without_streams
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


def sampled_coverage(streams: int, studies: int, truths: int) -> float:
    """Share of streams whose interval holds the value of 10,000 samples and `truths` orders; 8 networks, in turn.

    What streams say is about equally good or of very different quality; 400 samples and the usual orders each.
    """
    coalitions = pytest.importorskip("waterjar.probe.collective.coalitions")
    hits, rng = [], np.random.default_rng(9)
    for study in range(studies):
        strength = rng.uniform(0.1, 1, streams) if study % 2 else np.full(streams, 0.3)
        hard = 0.5 * (study % 4 > 1)

        def said(n: int, strength: np.ndarray = strength, hard: float = hard) -> tuple[np.ndarray, np.ndarray]:
            labels = rng.integers(2, size=n)
            noise = rng.normal(size=(n, streams)) + hard * rng.normal(size=(n, 1))
            return strength * (2 * labels - 1)[:, None] + noise, labels

        votes, labels = said(10_000)
        truth = np.zeros(streams)
        for _ in range(truths):
            own = rng.permutation(streams)
            for order in (own, own[::-1]):
                right = ((np.cumsum(votes[:, order], 1) > 0) == labels[:, None]).mean(0)
                truth[order] += np.diff(np.concatenate([[0.5], right])) / (2 * truths)
        votes, labels = said(400)
        present = coalitions.coalitions_of(streams, "removed", seed=study)
        right = ((present.astype(float) @ votes.T > 0) == labels).astype(float)
        right = np.concatenate([without_streams(labels)["accuracy"][None], right])
        present = np.concatenate([np.zeros((1, streams), bool), present])
        places = coalitions.places_of(streams, seed=study)
        game = Game(present, {"accuracy": right}, places=places, pairs=len(places) // 2)
        shares, error = game.shapley("accuracy")
        np.testing.assert_allclose(shares.sum(0), right[present.all(1)][0] - right[0], atol=1e-9)
        low, high = bounds(shares, error, 0.95, game.pairs)
        hits.append((low <= truth) & (truth <= high))
    return float(np.mean(hits))


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("streams", [12, 20, 40])
def test_shapley_values_of_many_streams(streams: int) -> None:
    """Of sampled orders: 8 networks a number of streams, 96 to 320 intervals."""
    assert sampled_coverage(streams, 8, 100) >= 0.9


@pytest.mark.torch
def test_shapley_values_of_many_streams_in_short() -> None:
    assert sampled_coverage(12, 2, 40) >= 0.9
