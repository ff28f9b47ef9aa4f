"""The seed authors' CNN."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.lab import networks

pytestmark = pytest.mark.torch


def the_seeds_way(network: networks.Network) -> nn.Sequential:
    """ReLU, then pool: the usual order."""
    layers: list[nn.Module] = []
    for stage in network.layer_names:
        parts = list(getattr(network, stage))
        layers += [parts[0], parts[2], parts[1]] if isinstance(parts[0], nn.Conv2d) else parts
    return nn.Sequential(*layers, network.head)


def test_pool_before_relu_changes_no_number_and_no_gradient() -> None:
    network = networks.build("cnn", n_classes=2, image_shape=(1, 28, 28), seed=3)
    usual = the_seeds_way(network)
    images = torch.randn(16, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(16) % 2
    found: list[tuple[Tensor, ...]] = []
    for one in (network, usual):
        logits = one(images)
        loss = nn.functional.cross_entropy(logits, labels)
        found.append((logits, *torch.autograd.grad(loss, list(network.parameters()))))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


def test_the_cnn_of_the_seed() -> None:
    network = networks.build("cnn", n_classes=2, image_shape=(1, 28, 28), seed=0)
    shapes = [tuple(weights.shape) for name, weights in network.named_parameters() if name.endswith("weight")]
    assert shapes == [(16, 1, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (64, 64), (64, 64), (2, 64)]
    _, seen = network.forward_features(torch.zeros(1, 1, 28, 28), readout="raw")
    assert [tuple(maps.shape[1:]) for maps in seen.values()] == [(16, 9, 9), (32, 3, 3), (64, 1, 1), (64,), (64,)]
    overlapping = networks.build("cnn", n_classes=2, image_shape=(1, 28, 28), seed=0, stride=2)
    assert overlapping.dense1[1].in_features == 64 * 2 * 2
    with pytest.raises(WaterjarError, match="images of 8x8 are too small for 2 pools of 3"):
        networks.build("cnn", n_classes=2, image_shape=(1, 8, 8), seed=0)


@torch.no_grad()
def test_layer_norm_is_over_one_image() -> None:
    network = networks.build(
        "cnn", n_classes=2, image_shape=(1, 9, 9), seed=0, channels=(4,), dense=(5,), layer_norm=True
    )
    images = torch.randn(3, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    maps = network.conv1[:2](images)
    for one in maps:
        assert abs(float(one.mean())) < 1e-6 and abs(float(one.var(correction=0)) - 1) < 1e-3
    units = network.penultimate[:3](network.conv1(images))
    assert float(units.mean(1).abs().max()) < 1e-6
