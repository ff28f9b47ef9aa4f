"""Against other people's implementations: shapiq, scikit-learn, torchmetrics, scipy."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import scipy.stats

from diagnose.collective.by_hand import random_streams
from waterjar.diagnose.collective import (
    class_information,
    disagreement,
    expected_calibration_error,
    fingerprint_similarity,
    fit_temperature,
    input_information,
    negative_log_likelihood,
    routing_entropy,
    shapley_interactions,
    shapley_values,
)
from waterjar.diagnose.collective.best import best_stream
from waterjar.diagnose.collective.resampling import mean_bounds, stream_bounds
from waterjar.run.combining import combine, log_softmax

RNG = np.random.default_rng(0)


def test_entropy_is_that_of_scipy() -> None:
    weights = RNG.dirichlet(np.ones(5), size=(20, 3))
    expected = scipy.stats.entropy(weights, axis=-1).mean()
    assert float(routing_entropy(weights)) == pytest.approx(expected)
    assert float(routing_entropy(3.0 * weights)) == pytest.approx(expected)  # weights need not sum to 1
    mean = scipy.stats.entropy(weights[:, 0].mean(0))
    assert input_information(weights[:, 0]) == pytest.approx(mean - scipy.stats.entropy(weights[:, 0], axis=-1).mean())


def test_intervals_are_those_of_scipy() -> None:
    for k, n in ((0, 12), (5, 12), (12, 12), (88, 100)):
        wilson = scipy.stats.binomtest(k, n).proportion_ci(0.9, method="wilson")
        found = [float(end.value[0]) for end in stream_bounds((np.arange(n) < k).astype(float)[:, None], 0.9)]
        assert found == pytest.approx([wilson.low, wilson.high])
    values = RNG.normal(size=(30, 2))
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(mean_bounds(values, 0.95), [expected.low, expected.high])


def test_softmax_and_means_are_those_of_scipy() -> None:
    logits = RNG.normal(size=(10, 4, 3)) * 30
    np.testing.assert_allclose(log_softmax(logits), scipy.special.log_softmax(logits, axis=-1))
    mixed = scipy.special.softmax(logits, axis=-1).mean(1)
    np.testing.assert_allclose(np.exp(combine(logits, "mean_probability")), mixed, atol=1e-15)


def test_the_best_is_the_one_that_numpy_takes() -> None:
    for _ in range(20):
        accuracy = RNG.random(6)
        assert best_stream(accuracy) == int(np.argmax(accuracy))


@pytest.mark.oracle
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_shapley_values_and_interactions_are_those_of_shapiq(n: int) -> None:
    shapiq = pytest.importorskip("shapiq")
    values = RNG.normal(size=2**n)
    values[0] = 0.3  # v(none) need not be 0

    def game(coalitions: np.ndarray) -> np.ndarray:
        return values[(coalitions.astype(int) << np.arange(n)).sum(1)]

    computer = shapiq.ExactComputer(n_players=n, game=game)
    shares = computer(index="SV", order=1)
    np.testing.assert_allclose(shapley_values(values, n), [shares[(i,)] for i in range(n)], atol=1e-10)
    pairs, own = computer(index="SII", order=2), shapley_interactions(values, n)
    for i in range(n):
        for j in range(i):
            assert own[i, j] == pytest.approx(pairs[(j, i)], abs=1e-10)


@pytest.mark.oracle
def test_nll_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    streams, labels = random_streams()
    logits = streams["s00"]
    shares = scipy.special.softmax(logits, axis=-1)
    assert negative_log_likelihood(logits, labels) == pytest.approx(metrics.log_loss(labels, shares))


@pytest.mark.oracle
def test_class_information_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, targets = RNG.integers(4, size=300), RNG.integers(3, size=300)
    expected = metrics.mutual_info_score(labels, targets)
    assert class_information(np.eye(3)[targets], labels) == pytest.approx(expected)


@pytest.mark.oracle
def test_disagreement_is_that_of_scikit_learn() -> None:
    """By Cohen's kappa, which is agreement beyond that of the marginal shares."""
    metrics = pytest.importorskip("sklearn.metrics")
    told = RNG.integers(3, size=(200, 2))
    apart = disagreement(told)[0, 1]
    assert apart == pytest.approx(metrics.zero_one_loss(told[:, 0], told[:, 1]))
    shares = np.stack([np.bincount(told[:, i], minlength=3) / 200 for i in (0, 1)])
    by_chance = float((shares[0] * shares[1]).sum())
    kappa = metrics.cohen_kappa_score(told[:, 0], told[:, 1])
    assert 1 - apart == pytest.approx(kappa * (1 - by_chance) + by_chance)


@pytest.mark.oracle
def test_similarity_is_that_of_scikit_learn() -> None:
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    prints = RNG.normal(size=(4, 16))
    np.testing.assert_allclose(fingerprint_similarity(prints), pairwise.cosine_similarity(prints), atol=1e-12)


@pytest.mark.oracle
@pytest.mark.torch
def test_ece_is_that_of_torchmetrics() -> None:
    torch = pytest.importorskip("torch")
    try:
        functional = pytest.importorskip("torchmetrics.functional.classification")
    except (
        RuntimeError
    ) as error:  # it imports torchvision where there is one, also one that was built for another torch
        pytest.skip(f"torchmetrics cannot be imported: {error}")
    streams, labels = random_streams(n=500)
    logits = 2.0 * streams["s00"]
    shares = torch.tensor(scipy.special.softmax(logits, axis=-1))
    found = functional.multiclass_calibration_error(shares, torch.tensor(labels), num_classes=4, n_bins=15, norm="l1")
    assert expected_calibration_error(logits, labels) == pytest.approx(float(found), abs=1e-6)


@pytest.mark.oracle
@pytest.mark.torch
def test_the_temperature_is_that_of_a_gradient_descent() -> None:
    """LBFGS of torch on the plain likelihood; the label's share of the targets differs by 1 / (n + 2)."""
    torch = pytest.importorskip("torch")
    streams, labels = random_streams(n=4000)
    logits = 3.0 * streams["s00"]
    scale = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([scale], max_iter=100, line_search_fn="strong_wolfe")
    values, wanted = torch.tensor(logits), torch.tensor(labels)

    def loss() -> float:
        optimiser.zero_grad()
        found = torch.nn.functional.cross_entropy(values * torch.exp(-scale), wanted)
        found.backward()
        return float(found.detach())

    optimiser.step(loss)
    assert log(fit_temperature(logits, labels)) == pytest.approx(float(scale.detach()), abs=2e-3)
