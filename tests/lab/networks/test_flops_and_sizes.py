"""Counts, against published ones and against sums by hand."""

import pytest
import torch

from waterjar.lab import networks

pytestmark = pytest.mark.torch


def n_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_resnet18_has_the_published_number_of_parameters():
    assert n_parameters(networks.build("resnet18", n_classes=100, seed=0)) == 11_220_132
    assert n_parameters(networks.build("resnet18", n_classes=10, seed=0)) == 11_173_962


def test_resnet18_flops_by_hand():
    def convolution(side, channels, wide, kernel=3):
        return side * side * channels * wide * kernel * kernel

    multiply_adds = convolution(32, 3, 64) + 4 * convolution(32, 64, 64)
    for side, wide in ((16, 128), (8, 256), (4, 512)):
        multiply_adds += convolution(side, wide // 2, wide) + 3 * convolution(side, wide, wide)
        multiply_adds += convolution(side, wide // 2, wide, kernel=1)
    multiply_adds += 512 * 100
    assert round(multiply_adds / 1e9, 2) == 0.56  # the published figure for CIFAR
    assert networks.flops(networks.build("resnet18", n_classes=100, seed=0)) == 2 * multiply_adds


def test_small_cnn_flops_by_hand():
    multiply_adds = 16 * 16 * 16 * 27 + 8 * 8 * 32 * 16 * 9 + 4 * 4 * 64 * 32 * 9 + 4 * 4 * 64 * 60
    network = networks.build("small_cnn", n_classes=60, seed=0)
    assert networks.flops(network) == 2 * multiply_adds
    assert n_parameters(network) == (27 + 2) * 16 + (144 + 2) * 32 + (288 + 2) * 64 + (1024 + 1) * 60
    plain = networks.build("small_cnn", n_classes=60, seed=0, norm="none")
    assert networks.flops(plain) == 2 * multiply_adds
    assert n_parameters(plain) == (27 + 1) * 16 + (144 + 1) * 32 + (288 + 1) * 64 + (1024 + 1) * 60


def test_vit_flops_by_hand():
    tokens, dim = 65, 64
    block = tokens * dim * (3 * dim + dim + 2 * dim + 2 * dim) + 2 * tokens * tokens * dim
    multiply_adds = 64 * 48 * dim + 4 * block + dim * 60
    assert networks.flops(networks.build("vit", n_classes=60, seed=0)) == 2 * multiply_adds


def test_counting_leaves_the_network_as_it_was():
    network = networks.build("small_cnn", n_classes=3, seed=0, norm="batch").train()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    networks.flops(network)
    assert network.training and network.head.weight.device.type == "cpu"
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
