"""Gaussian noise: x + std n, n of mean 0 and standard deviation 1 at every pixel and channel; clipped to [0, 1].

`seed`: std = 0.1 at severity 3, in proportion for the others. `cifar_c`: 0.04 0.06 0.08 0.09 0.10.
"""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.probe.draws import Draws


def add_noise(images: Tensor, std: float, draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same."""
    return images + std * torch.from_numpy(draws.normal(images.shape[1:])).to(images)


LADDERS = {
    "seed": (add_noise, (0.1 / 3, 0.2 / 3, 0.1, 0.4 / 3, 0.5 / 3)),
    "cifar_c": (add_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
}
