"""ER and DER++: loss terms and steps by hand in numpy; what the memory holds; who shares batch statistics with whom."""

import copy

import numpy as np
import pytest
import torch

from lab.learners import linear_softmax as linear
from waterjar.lab import learners, networks

pytestmark = pytest.mark.torch

LR = 0.1
EXACT = {"rtol": 1e-6, "atol": 1e-9}  # stored logits are float32


def memory(learner):
    """That of its own option."""
    return learner.options[0].memory


def first_step(name, size=5, **settings):
    """A learner after one batch that fills its memory: whatever it draws next is all of that batch."""
    learner = learners.make(name, linear.network(), seed=3, lr=LR, buffer_size=size, **settings)
    before, batch = linear.matrix(learner.network), linear.batch(size)
    learner.begin_task(0)
    seen = learner.observe(*batch)
    assert seen.replayed == 0
    np.testing.assert_allclose(
        linear.matrix(learner.network), before - LR * linear.cross_entropy_gradient(before, *batch), rtol=1e-12
    )
    return learner, before, batch


def test_er_takes_the_mean_over_the_union():
    learner, _, old = first_step("er")
    theta, new = linear.matrix(learner.network), linear.batch(5, seed=1)
    seen = learner.observe(*new)
    assert seen.replayed == 5
    both = tuple(torch.cat(pair) for pair in zip(old, new, strict=True))
    expected = theta - LR * linear.cross_entropy_gradient(theta, *both)
    np.testing.assert_allclose(linear.matrix(learner.network), expected, **EXACT)
    assert float(seen.loss) == pytest.approx(linear.cross_entropy(theta, *new).mean())


def test_er_weighs_every_example_alike_whatever_the_sizes():
    learner, _, old = first_step("er", minibatch_size=8)  # more than there are: all five
    theta, new = linear.matrix(learner.network), linear.batch(3, seed=1)
    assert learner.observe(*new).replayed == 5
    gradient = (3 * linear.cross_entropy_gradient(theta, *new) + 5 * linear.cross_entropy_gradient(theta, *old)) / 8
    np.testing.assert_allclose(linear.matrix(learner.network), theta - LR * gradient, **EXACT)


@pytest.mark.parametrize("forward", ["auto", "separate", "together"])
@pytest.mark.parametrize("distance", ["mean", "sum"])
def test_derpp_by_hand(forward, distance):
    alpha, beta = 0.3, 0.7
    learner, seen_with, old = first_step("derpp", alpha=alpha, beta=beta, forward=forward, distance=distance)
    remembered = linear.logits(seen_with, old[0])  # of the network BEFORE its first update
    theta, new = linear.matrix(learner.network), linear.batch(5, seed=1)
    over = remembered.size if distance == "mean" else len(remembered)

    def loss(at):
        terms = linear.cross_entropy(at, *new).mean(), linear.cross_entropy(at, *old).mean()
        return terms[0] + alpha * np.sum((linear.logits(at, old[0]) - remembered) ** 2) / over + beta * terms[1]

    seen = learner.observe(*new)
    assert seen.replayed == 10
    expected = theta - LR * linear.finite_difference(loss, theta)
    np.testing.assert_allclose(linear.matrix(learner.network), expected, rtol=1e-6, atol=1e-7)
    assert float(seen.loss) == pytest.approx(linear.cross_entropy(theta, *new).mean(), rel=1e-12)
    predictions = linear.logits(theta, new[0]).argmax(1)
    assert int(seen.correct) == np.sum(predictions == new[1].numpy())


def test_derpp_closed_form_gradient_of_the_logit_term():
    """alpha 2 / (n c) (h - z)^T x, beside the cross-entropy of the batch."""
    learner, seen_with, old = first_step("derpp", alpha=2.0, beta=0.0)
    theta, new = linear.matrix(learner.network), linear.batch(5, seed=1)
    gap = linear.logits(theta, old[0]) - linear.logits(seen_with, old[0])
    gradient = linear.cross_entropy_gradient(theta, *new) + 2.0 * 2 / gap.size * gap.T @ linear.design(old[0])
    learner.observe(*new)
    np.testing.assert_allclose(linear.matrix(learner.network), theta - LR * gradient, **EXACT)


@pytest.mark.parametrize("name", ["er", "derpp"])
def test_replay_is_what_was_seen_patch_and_all(name):
    """Mistake 5: the buffer held un-patched images. And no second augmentation may cut the patch away."""
    network = networks.build("small_cnn", n_classes=3, seed=0, width=2)
    learner = learners.make(name, network, seed=0, buffer_size=8)
    seen = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    seen[:, :, 5:9, 7:11] = torch.tensor([1.0, -1.0, 1.0])[:, None, None]
    original = seen.clone()
    learner.begin_task(4)
    learner.observe(seen, torch.tensor([0, 1, 2, 0, 1, 2, 0, 1]))
    seen.zero_()  # the memory keeps a copy
    drawn = memory(learner).draw(8, "replay")
    assert torch.equal(memory(learner).inputs[0], original)
    assert torch.equal(drawn.inputs[0, :, :, 5:9, 7:11], original[:, :, 5:9, 7:11])


def batch_norm_learner(name, **settings):
    network = networks.build("small_cnn", n_classes=3, seed=0, width=4, norm="batch")
    learner = learners.make(name, network, seed=0, buffer_size=6, lr=1e-12, **settings)
    generator = torch.Generator().manual_seed(0)
    batches = [(k + torch.randn(6, 3, 32, 32, generator=generator), torch.arange(6) % 3) for k in range(2)]
    learner.begin_task(0)
    learner.observe(*batches[0])
    twin = copy.deepcopy(learner.network).train()
    learner.observe(*batches[1])
    return learner.network, twin, batches


def statistics(network):
    return torch.cat([value for key, value in network.state_dict().items() if "running" in key])


def test_er_passes_batch_and_replay_together():
    network, twin, batches = batch_norm_learner("er")
    twin(torch.cat([batches[1][0], batches[0][0]]))
    assert torch.allclose(statistics(network), statistics(twin), atol=1e-5)


@pytest.mark.parametrize(("forward", "separate"), [("auto", True), ("separate", True), ("together", False)])
def test_derpp_passes_them_one_after_the_other_where_batch_norm_would_mix_them(forward, separate):
    network, twin, batches = batch_norm_learner("derpp", forward=forward)
    other = copy.deepcopy(twin)
    for part in (batches[1][0], batches[0][0], batches[0][0]):
        twin(part)
    other(torch.cat([batches[1][0], batches[0][0], batches[0][0]]))
    right, wrong = (twin, other) if separate else (other, twin)
    assert torch.allclose(statistics(network), statistics(right), atol=1e-5)
    assert not torch.allclose(statistics(network), statistics(wrong), atol=1e-3)


def test_memory_of_the_seeds_preset():
    preset = learners.presets("derpp")["derpp_einstellung"]
    assert preset.training == {"n_epochs": 100, "batch_size": 32}
    network = networks.build("small_cnn", n_classes=60, seed=0)
    learner = learners.make("derpp", network, seed=0, preset="derpp_einstellung")
    assert (learner.settings.alpha, learner.settings.beta, learner.settings.lr) == (0.1, 0.5, 0.01)
    assert learner.buffer_bytes == 500 * (3 * 32 * 32 * 4 + 60 * 4 + 8)
    changed = learners.make("derpp", network, seed=0, preset="derpp_einstellung", buffer_size=100)
    assert changed.buffer_bytes == learner.buffer_bytes // 5 and changed.settings.beta == 0.5


def test_a_short_type_halves_the_images():
    network = networks.build("small_cnn", n_classes=60, seed=0)
    learner = learners.make("er", network, seed=0, buffer_size=10, buffer_dtype="bfloat16")
    assert learner.buffer_bytes == 10 * (3 * 32 * 32 * 2 + 8)
    x = torch.randn(10, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    learner.begin_task(0)
    learner.observe(x, torch.arange(10))
    assert torch.equal(memory(learner).inputs[0], x.bfloat16())
    assert learner.observe(x, torch.arange(10)).replayed == 10
