"""What one image costs."""

from __future__ import annotations

import copy

import torch
from torch.utils.flop_counter import FlopCounterMode

from waterjar.lab.networks._network import Network


def flops(network: Network) -> int:
    """Floating-point operations of one forward pass of one image.

    A multiplication and its addition count as TWO, so the "multiply-adds" of the papers are half of it. Only
    convolutions and matrix products (attention's too) count; normalisation, ReLU, pooling and biases, some
    per cent, do not. A training step of an image costs about three times as much. Nothing is computed: it
    counts on shapes, on a copy without storage.

    >>> from waterjar.lab import networks
    >>> flops(networks.build("mlp", n_classes=10, image_shape=(1, 4, 4), seed=0, hidden=(8,)))
    416
    """
    shadow = copy.deepcopy(network).to("meta").eval()
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        shadow(torch.empty(1, *network.image_shape, device="meta"))
    return int(counter.get_total_flops())
