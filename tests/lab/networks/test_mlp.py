"""The perceptron: what `test_against_numpy` does not say of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from waterjar.lab import networks

pytestmark = pytest.mark.torch


def test_of_grey_images_the_order_is_the_usual_one() -> None:
    """To the bit what both perceptrons gave that there once were."""
    network = networks.build("mlp", n_classes=3, image_shape=(1, 8, 8), seed=2, hidden=(6, 4))
    usual = nn.Sequential(nn.Flatten(), *network.hidden1[1:], *network.penultimate, network.head)
    images = torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(images), usual(images))


def test_layer_norm_is_before_each_relu() -> None:
    network = networks.build("mlp", n_classes=3, image_shape=(1, 2, 2), seed=0, hidden=(6, 4), layer_norm=True)
    kinds = [type(module) for module in network.modules() if not list(module.children())]
    hidden = [nn.Linear, nn.LayerNorm, nn.ReLU]
    assert kinds[1:] == [*hidden, *hidden, nn.Linear]
