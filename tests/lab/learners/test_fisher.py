"""The Fisher information, against the closed form of a linear softmax model and against one backward pass per image."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from torch.nn import functional

from lab.learners import linear_softmax as linear
from waterjar.errors import WaterjarError
from waterjar.lab import networks
from waterjar.lab.learning import fisher as _fisher
from waterjar.lab.learning.fisher import diagonal_fisher

pytestmark = pytest.mark.torch


def closed_form(variant, theta, batches):
    """(class, unit + 1), from g = -(p - e_y) x^T."""
    x = np.concatenate([linear.design(inputs) for inputs, _ in batches])
    p = np.concatenate([softmax(linear.logits(theta, inputs), axis=1) for inputs, _ in batches])
    residual = np.concatenate([linear.residual(theta, inputs, labels) for inputs, labels in batches])
    if variant == "exact":  # sum_y p_y (p_c - [c = y])^2 = p_c (1 - p_c)
        return (p * (1 - p)).T @ x**2 / len(x)
    if variant == "empirical":
        return (residual**2).T @ x**2 / len(x)
    if variant == "label_weighted":
        labels = np.concatenate([labels.numpy() for _, labels in batches])
        return (residual**2 * p[np.arange(len(x)), labels][:, None]).T @ x**2 / len(x)
    return np.mean([linear.cross_entropy_gradient(theta, *batch) ** 2 for batch in batches], axis=0)


@pytest.mark.parametrize("variant", ["exact", "empirical", "label_weighted", "batch"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_closed_form(variant, seed, sizes):
    network = linear.network(seed=seed)
    batches = [linear.batch(size, seed=seed + k) for k, size in enumerate(sizes)]
    given_fisher = linear.joined(diagonal_fisher(network, batches, variant))
    np.testing.assert_allclose(given_fisher, closed_form(variant, linear.matrix(network), batches), rtol=1e-9)


def test_the_variants_are_four_different_numbers():
    network, batches = linear.network(), [linear.batch(6, seed=k) for k in range(2)]
    totals = {
        variant: round(float(sum(f.sum() for f in diagonal_fisher(network, batches, variant))), 9)
        for variant in ("exact", "empirical", "label_weighted", "batch")
    }
    assert len(set(totals.values())) == 4
    assert totals["label_weighted"] < totals["exact"]  # one term of the exact sum


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mlp", {"hidden": (6,)}),
        ("small_cnn", {"width": 2, "norm": "none"}),
        ("small_cnn", {"width": 4}),
        ("small_cnn", {"width": 2, "norm": "batch"}),
        ("resnet18", {"width": 2}),
        ("vit", {"dim": 8, "depth": 1, "heads": 2}),
    ],
)
def test_every_network_against_a_loop_over_single_images(name, options):
    """vmap must give what one backward pass per image gives, running statistics untouched, mode restored."""
    network = networks.build(name, n_classes=3, image_shape=(3, 8, 8), seed=0, **options).double()
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(5, 3, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1, 0])
    network.train()(inputs)  # running statistics that are not the first ones
    before = {key: value.clone() for key, value in network.state_dict().items()}
    fisher = diagonal_fisher(network, [(inputs[:2], labels[:2]), (inputs[2:], labels[2:])])
    assert network.training
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    network.eval()
    expected = [torch.zeros_like(parameter) for parameter in network.parameters()]
    for image, label in zip(inputs, labels, strict=True):
        loss = functional.cross_entropy(network(image[None]), label[None])
        for total, gradient in zip(expected, torch.autograd.grad(loss, list(network.parameters())), strict=True):
            total.add_(gradient**2 / 5)
    for one, other in zip(fisher, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-8, atol=1e-14)


def test_small_chunks_give_the_same(monkeypatch):
    network, batches = linear.network(), [linear.batch(7)]
    whole = linear.joined(diagonal_fisher(network, batches))
    monkeypatch.setattr(_fisher, "_BYTES_AT_ONCE", 2 * 16 * 8)  # two examples of 16 float64 parameters
    np.testing.assert_allclose(linear.joined(diagonal_fisher(network, batches)), whole, rtol=1e-12)


@pytest.mark.parametrize("limit", [1, 4, 6, 10, 99])
def test_a_limit_takes_the_first_examples_and_reads_no_further(limit):
    network = linear.network()
    inputs, labels = linear.batch(10)
    read = []

    def batches():
        for start in (0, 4, 8):
            read.append(start)
            yield inputs[start : start + 4], labels[start : start + 4]

    given_fisher = linear.joined(diagonal_fisher(network, batches(), limit=limit))
    expected = diagonal_fisher(network, [(inputs[:limit], labels[:limit])])
    np.testing.assert_allclose(given_fisher, linear.joined(expected), rtol=1e-12)
    assert len(read) == min(3, -(-limit // 4))


def test_no_examples_is_an_error():
    with pytest.raises(WaterjarError, match="there were none"):
        diagonal_fisher(linear.network(), [])
