"""Online EWC: penalty and gradient by closed form and finite differences, accumulation over tasks by hand."""

import numpy as np
import pytest
import torch

from lab.learners import linear_softmax as linear
from waterjar.lab import learners, networks
from waterjar.lab.learning.fisher import diagonal_fisher

pytestmark = pytest.mark.torch

PENALTIES = {
    "schwarz": lambda strength, gamma: 0.5 * strength * gamma,
    "mammoth": lambda strength, gamma: strength,
}


def option(learner):
    """Its springs."""
    return learner.options[0]


def importance(learner):
    """As a matrix (class, unit + 1)."""
    return joined(learner, option(learner).importance)


def joined(learner, row):
    """A row (1, param) as a matrix (class, unit + 1)."""
    views = learner._learner.weights.views_of(row)
    return linear.joined([views["head.weight"][0], views["head.bias"][0]])


def after_one_task(**settings):
    learner = learners.make("ewc_on", linear.network(), seed=0, **({"lr": 0.1, "e_lambda": 7.0} | settings))
    learner.begin_task(0)
    for k in range(3):
        learner.observe(*linear.batch(6, seed=k))
    learner.end_task([linear.batch(6, seed=k) for k in range(3)])
    return learner


@pytest.mark.parametrize("convention", PENALTIES)
def test_penalty_and_step_are_those_of_the_written_loss(convention):
    learner = after_one_task(penalty=convention, gamma=0.8)
    anchor = linear.matrix(learner.network)
    fisher = linear.joined(diagonal_fisher(learner.network, [linear.batch(6, seed=k) for k in range(3)]))
    assert float(option(learner).penalty()) == 0.0
    learner.begin_task(1)
    learner.observe(*linear.batch(6, seed=10))
    theta, batch = linear.matrix(learner.network), linear.batch(6, seed=11)

    def penalty(at):
        return PENALTIES[convention](7.0, 0.8) * np.sum(fisher * (at - anchor) ** 2)

    assert penalty(theta) > 1e-3
    assert float(option(learner).penalty()) == pytest.approx(penalty(theta), rel=1e-12)
    gradient = linear.finite_difference(lambda at: linear.cross_entropy(at, *batch).mean() + penalty(at), theta)
    seen = learner.observe(*batch)
    np.testing.assert_allclose(linear.matrix(learner.network), theta - 0.1 * gradient, atol=1e-9)
    assert float(seen.loss) == pytest.approx(linear.cross_entropy(theta, *batch).mean(), rel=1e-12)
    assert float(seen.gradient_norm) == pytest.approx(np.linalg.norm(gradient), rel=1e-6)


@pytest.mark.parametrize("fisher", ["empirical", "exact", "label_weighted", "batch"])
def test_importances_decay_by_gamma_and_the_anchor_moves_on(fisher):
    learner = after_one_task(gamma=0.6, fisher=fisher)
    first = linear.joined(diagonal_fisher(learner.network, [linear.batch(6, seed=k) for k in range(3)], fisher))
    learner.begin_task(1)
    learner.observe(*linear.batch(6, seed=10))
    learner.end_task([linear.batch(5, seed=20)])
    second = linear.joined(diagonal_fisher(learner.network, [linear.batch(5, seed=20)], fisher))
    np.testing.assert_allclose(importance(learner), 0.6 * first + second, rtol=1e-10)
    np.testing.assert_array_equal(joined(learner, option(learner).anchor), linear.matrix(learner.network))


def test_springs_hold_what_matters():
    """The way from the end of task 1, in the metric of its Fisher information, is shorter the stiffer the springs."""
    old, new = linear.batch(40, seed=0), linear.batch(40, seed=1)
    ways = []
    for strength in (0.0, 1.0, 4.0):
        learner = learners.make("ewc_on", linear.network(), seed=0, lr=0.1, e_lambda=strength)
        learner.begin_task(0)
        for _ in range(50):
            learner.observe(*old)
        learner.end_task([old])
        anchor, fisher = linear.matrix(learner.network), importance(learner)
        learner.begin_task(1)
        for _ in range(50):
            learner.observe(*new)
        ways.append(np.sum(fisher * (linear.matrix(learner.network) - anchor) ** 2))
    assert ways[0] > 1.5 * ways[1] > 3 * ways[2] > 0


def test_fisher_samples_is_a_limit():
    one, few = after_one_task(), after_one_task(fisher_samples=6)
    assert not np.array_equal(importance(one), importance(few))
    expected = diagonal_fisher(few.network, [linear.batch(6, seed=0)])
    np.testing.assert_array_equal(importance(few), linear.joined(expected))


def test_bytes_kept():
    learner = learners.make("ewc_on", linear.network(), seed=0)
    assert learner.buffer_bytes == 0
    assert after_one_task().buffer_bytes == 2 * 16 * 8


def test_the_preset_is_the_seeds():
    preset = learners.presets("ewc_on")["ewc_on_einstellung"]
    assert preset.training == {"n_epochs": 100, "batch_size": 64}
    settings = learners.parse("ewc_on", {}, preset="ewc_on_einstellung")
    assert (settings.e_lambda, settings.gamma, settings.lr) == (5.0, 1.0, 0.01)
    assert (settings.penalty, settings.fisher) == ("mammoth", "label_weighted")


def test_measuring_does_not_train_in_eval_mode_afterwards():
    network = networks.build("small_cnn", n_classes=3, seed=0, width=2, norm="batch")
    learner = learners.make("ewc_on", network, seed=0)
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 2, 0])
    learner.begin_task(0)
    learner.end_task([(x, y)])
    learner.begin_task(1)
    network = learner.network
    network.eval()
    before = network.state_dict()["conv1.1.running_mean"].clone()
    learner.observe(x, y)
    assert network.training and not torch.equal(before, network.state_dict()["conv1.1.running_mean"])


@pytest.mark.parametrize(("fisher", "limit", "expected"), [
    ("empirical", None, 15), ("batch", None, 15), ("label_weighted", 7, 7), ("empirical", 40, 15), ("exact", 7, 7 * 3),
])  # fmt: skip
def test_what_the_end_of_a_task_costs(fisher, limit, expected):
    """Examples that went forward and backward; the exact Fisher information takes one pass per class."""
    network = networks.build("mlp", n_classes=3, image_shape=(1, 2, 2), seed=0, hidden=(4,))
    learner = learners.make("ewc_on", network, seed=0, fisher=fisher, fisher_samples=limit)
    learner.begin_task(0)
    batches = [(torch.ones(size, 1, 2, 2), torch.zeros(size, dtype=torch.int64)) for size in (5, 6, 4)]
    assert learner.end_task(batches) == expected
    assert learners.make("sgd", network, seed=0).end_task(batches) == 0
