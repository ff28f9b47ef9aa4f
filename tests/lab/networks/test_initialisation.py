"""First weights: their distribution, and that none is forgotten."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from waterjar.errors import WaterjarError
from waterjar.lab import networks
from waterjar.lab.networks._initialisation import fan_in_uniform, he_normal, initialise, xavier_uniform
from waterjar.lab.networks._network import Network

pytestmark = pytest.mark.torch


def filled(rule, shape):
    weight = torch.empty(shape)
    rule(weight, torch.Generator().manual_seed(0))
    return weight.numpy().ravel()


def test_he_is_normal_with_variance_two_over_fan_in():
    values = filled(he_normal, (64, 16, 3, 3))
    assert stats.kstest(values, stats.norm(0, math.sqrt(2 / 144)).cdf).pvalue > 1e-3


def test_xavier_is_uniform_between_its_bounds():
    values = filled(xavier_uniform, (80, 40))
    bound = math.sqrt(6 / 120)
    assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3


def test_the_head_is_uniform_and_small():
    values = filled(fan_in_uniform, (60, 100))
    assert stats.kstest(values, stats.uniform(-0.1, 0.2).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("norm", "low", "high"), [("none", 0.5, 2.0), ("group", 0.4, 0.6)])
def test_a_small_cnn_starts_near_chance(norm, low, high):
    """Signal neither dies nor explodes through He's layers, and the head adds little: loss ln(classes).

    Of a normalised signal that is even around 0, a ReLU leaves half of the square.
    """
    network = networks.build("small_cnn", n_classes=60, seed=0, norm=norm)
    x = torch.randn(256, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits, features = network.forward_features(x, readout="flat")
    for layer in ("conv1", "conv2", "conv3"):
        assert low < float(features[layer].square().mean()) < high
    loss = nn.functional.cross_entropy(logits, torch.arange(256) % 60)
    assert abs(float(loss) - math.log(60)) < 0.4


def test_biases_are_zero_and_scales_one():
    state = networks.build("resnet18", n_classes=3, seed=0, width=2).state_dict()
    for key, value in state.items():
        if "norm" in key or key.startswith("stem.1") or "shortcut.2" in key:
            expected = {"weight": 1, "bias": 0, "running_mean": 0, "running_var": 1, "num_batches_tracked": 0}
            assert np.all(value.numpy() == expected[key.rsplit(".", 1)[1]])
    assert np.all(state["head.bias"].numpy() == 0)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.by


class Forgetful(Scale):
    def fill(self, generator):
        pass


@pytest.mark.parametrize(
    ("module", "words"), [(Scale, "no rule .* 'penultimate' .Scale."), (Forgetful, "penultimate.by")]
)
def test_a_parameter_that_nobody_fills_is_an_error(module, words):
    network = Network(
        {"penultimate": module()}, nn.utils.skip_init(nn.Linear, 2, 2), image_shape=(1, 1, 2), rule=he_normal
    )
    with pytest.raises(WaterjarError, match=words):
        initialise(network, torch.Generator())


def test_the_last_stage_must_be_the_penultimate():
    with pytest.raises(WaterjarError, match="penultimate"):
        Network({"hidden": nn.Flatten()}, nn.utils.skip_init(nn.Linear, 2, 2), image_shape=(1, 1, 2), rule=he_normal)
