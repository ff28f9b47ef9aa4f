"""Three ways to one gradient: written out, autograd, torch.func."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from waterjar.lab import networks
from waterjar.lab.learning import objectives
from waterjar.lab.learning.chain import is_chain
from waterjar.lab.learning.gradients import Gradients
from waterjar.lab.learning.segments import lesson
from waterjar.lab.learning.weights import Weights
from waterjar.lab.networks import Network

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("mlp", {"hidden": (6, 5)}),
    ("mlp", {"hidden": (6,), "layer_norm": True}),
    ("cnn", {"channels": (3, 4), "dense": (6, 5), "pool": 2}),
    ("cnn", {"channels": (3,), "dense": (6,), "pool": 3, "stride": 2, "layer_norm": True}),
    ("small_cnn", {"width": 2, "norm": "none"}),
    ("small_cnn", {"width": 2}),
]


def built(name: str, settings: dict[str, Any], seed: int) -> Network:
    return networks.build(name, n_classes=3, image_shape=(2, 12, 12), seed=seed, **settings)


def batch(repeats: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    images = torch.randn(repeats, 7, 12, 12, 2, generator=draw).movedim(-1, -3)
    return images, torch.randint(0, 3, (repeats, 7), generator=draw), torch.rand(repeats, 7, generator=draw)


def gradients_of(nets: list[Network], learner: str, layers: tuple[str, ...] = ()) -> tuple[Gradients, Weights]:
    weights = Weights(nets[0], len(nets), CPU)
    weights.fill(nets)
    return Gradients(nets[0], weights, objectives.make(learner, {}), layers, torch.zeros_like(weights.values)), weights


def as_row(net: Network, parts: Sequence[Tensor]) -> Tensor:
    """Tensors like its parameters, laid out as weights are: (param,)."""
    row = Weights(net, 1, CPU).rows()
    for view, part in zip(Weights(net, 1, CPU).views_of(row).values(), parts, strict=True):
        view[0].copy_(part)
    return row[0]


@pytest.mark.parametrize(("name", "settings"), NETWORKS)
def test_supervised_gradient_is_autograds_of_cross_entropy(name: str, settings: dict[str, Any]) -> None:
    nets = [built(name, settings, seed) for seed in range(3)]
    images, labels, uniform = batch(3)
    expected, logits = [], []
    for net, own, target in zip(nets, images, labels, strict=True):
        logits.append(net(own))
        found = torch.autograd.grad(functional.cross_entropy(logits[-1], target), list(net.parameters()))
        expected.append(as_row(net, found))
    together, _ = gradients_of(nets, "sl")
    told = together.compute(lesson(images, labels, ()), uniform, {})
    torch.testing.assert_close(together.values, torch.stack(expected), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(told.logits, torch.stack(logits).detach())
    for k, net in enumerate(nets):
        alone, _ = gradients_of([net], "sl")
        alone.compute(lesson(images[k : k + 1], labels[k : k + 1], ()), uniform[k : k + 1], {})
        torch.testing.assert_close(alone.values[0], expected[k], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("name", "settings"), NETWORKS)
@pytest.mark.parametrize("baseline", ["batch", "running"])
def test_reinforce_alone_and_together(name: str, settings: dict[str, Any], baseline: str) -> None:
    nets = [built(name, settings, seed) for seed in range(2)]
    images, labels, uniform = batch(2)
    learner = objectives.make("rl", {"baseline": baseline})
    state = {key: torch.tensor([value, value / 2]) for key, value in learner.start().items()}
    weights = Weights(nets[0], 2, CPU)
    weights.fill(nets)
    together = Gradients(nets[0], weights, learner, nets[0].layer_names, torch.zeros_like(weights.values))
    both = together.compute(lesson(images, labels, ()), uniform, state)
    for k, net in enumerate(nets):
        own = Weights(net, 1, CPU)
        own.fill([net])
        alone = Gradients(net, own, learner, net.layer_names, torch.zeros_like(own.values))
        one = slice(k, k + 1)
        told = alone.compute(
            lesson(images[one], labels[one], ()), uniform[one], {name: value[one] for name, value in state.items()}
        )
        torch.testing.assert_close(alone.values, together.values[one], atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(told.reward, both.reward[one] if both.reward is not None else None)
        for key in state:
            torch.testing.assert_close(told.state[key], both.state[key][one])
        _, maps = net.forward_features(images[k], readout="raw")
        for layer in net.layer_names:
            axes = tuple(dim for dim in range(maps[layer].ndim) if dim != 1)
            for found in (told.activity[layer], both.activity[layer][one]):
                torch.testing.assert_close(found[0], maps[layer].abs().mean(axes).detach())


@pytest.mark.parametrize(("name", "settings"), [NETWORKS[0], NETWORKS[2], NETWORKS[4]])
def test_descending_at_once_is_descending_the_gradient(name: str, settings: dict[str, Any]) -> None:
    images, labels, uniform = batch(1)
    written, at_once = (gradients_of([built(name, settings, 5)], "sl") for _ in range(2))
    assert at_once[0].can_descend
    written[0].compute(lesson(images, labels, ()), uniform, {})
    rates = (
        torch.full((written[1].features,), 0.3),
        torch.full((written[1].values.shape[1] - written[1].features,), 0.07),
    )
    expected = written[1].values - torch.cat(rates) * written[0].values
    at_once[0].compute(lesson(images, labels, ()), uniform, {}, (0.3, 0.07))
    torch.testing.assert_close(at_once[1].values, expected)
    assert not at_once[0].values.any()


@pytest.mark.parametrize(("name", "settings"), NETWORKS)
def test_reading(name: str, settings: dict[str, Any]) -> None:
    nets = [built(name, settings, seed) for seed in range(2)]
    images, _, _ = batch(2)
    together, _ = gradients_of(nets, "sl")
    logits, maps = together.read(images, ["penultimate"])
    for k, net in enumerate(nets):
        expected, layers = net.forward_features(images[k], ["penultimate"])
        alone, _ = gradients_of([net], "sl")
        for found, found_maps in ((logits[k], maps), (alone.read(images[k : k + 1])[0][0], None)):
            torch.testing.assert_close(found, expected)
            if found_maps is not None:
                torch.testing.assert_close(found_maps["penultimate"][k], layers["penultimate"])


def test_what_is_a_chain() -> None:
    chains = [(is_chain(built(*one, 0), 1), is_chain(built(*one, 0), 2)) for one in NETWORKS]
    assert chains == [(True, True), (False, False), (True, False), (False, False), (True, False), (False, False)]
    odd = built("cnn", {"channels": (3,), "dense": (4,)}, 0)
    odd.conv1[1] = torch.nn.MaxPool2d(3, padding=1)
    assert not is_chain(odd, 1)
    odd = built("mlp", {"hidden": (4,)}, 0)
    odd.head = torch.nn.Linear(4, 3, bias=False, device="meta")
    assert not is_chain(odd, 1)
