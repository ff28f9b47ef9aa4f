"""Which weights belong to a hidden unit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from waterjar.errors import WaterjarError
from waterjar.lab import networks
from waterjar.lab.networks._units import unit_layers

pytestmark = pytest.mark.torch


CNN = {"channels": (3, 2), "dense": (4,), "pool": 2}


@pytest.mark.parametrize(("name", "settings"), [("mlp", {"hidden": (5, 4)}), ("cnn", CNN), ("small_cnn", {"width": 2})])
def test_a_units_weights_are_those_that_its_output_hangs_on(name: str, settings: dict[str, object]) -> None:
    """Without its outgoing weights a unit does not reach the logits; without others it does."""
    network = networks.build(name, n_classes=3, image_shape=(1, 12, 12), seed=1, **settings)
    images = torch.randn(20, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    own = dict(network.named_parameters())
    for layer in unit_layers(network, "test"):
        before = network(images)
        for unit in range(layer.units):
            moved = own[layer.incoming].detach().clone()
            with torch.no_grad():
                saved = own[layer.outgoing].clone()
                layer.fan_out(own[layer.outgoing][None])[:, :, :, unit] = 0.0
                without = network(images)
                own[layer.incoming][unit] = 7.0
                assert torch.equal(network(images), without)
                own[layer.outgoing].copy_(saved)
                own[layer.incoming].copy_(moved)
        assert torch.equal(network(images), before)


def test_only_a_chain_has_units() -> None:
    with pytest.raises(
        WaterjarError, match="option 'redo' renews single units, and needs a network that is a plain chain"
    ):
        unit_layers(networks.build("vit", n_classes=2, image_shape=(3, 16, 16), seed=0), "redo")
    network = networks.build("mlp", n_classes=2, image_shape=(1, 2, 2), seed=0, hidden=(3,))
    network.penultimate.append(nn.Linear(3, 3, device="meta"))
    with pytest.raises(WaterjarError, match="has 2 layers inside"):
        unit_layers(network, "redo")
    network = networks.build("mlp", n_classes=2, image_shape=(1, 2, 2), seed=0, hidden=(3, 4))
    network.head = nn.Linear(6, 2, device="meta")
    with pytest.raises(WaterjarError, match="head does not follow"):
        unit_layers(network, "redo")
