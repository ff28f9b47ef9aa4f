"""Contrast: pixels drawn to their mean, or away from it: f x + (1 - f) m; clipped to [0, 1].

`seed`: torchvision's ColorJitter(contrast=0.5) draws f from U[0.5, 1.5], at severity 3; U[1 - b, 1 + b] with b in
proportion for the others. m is the mean of the grey image, 0.2989 R + 0.587 G + 0.114 B (of other numbers of channels,
the plain mean). About half of the images get MORE contrast. `cifar_c`: f = 0.75 0.5 0.4 0.3 0.15, m the mean of each
channel.
"""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.probe.draws import Draws

_GREY = (0.2989, 0.587, 0.114)


def jitter_contrast(images: Tensor, half_width: float, draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same; every image has a factor of its own."""
    factor = torch.from_numpy(draws.uniform((1, 1, 1), 1 - half_width, 1 + half_width)).to(images)
    if images.shape[1] == 3:
        grey = (images * torch.tensor(_GREY, dtype=images.dtype, device=images.device)[:, None, None]).sum(
            1, keepdim=True
        )
    else:
        grey = images.mean(1, keepdim=True)
    return factor * images + (1 - factor) * grey.mean((2, 3), keepdim=True)


def lower_contrast(images: Tensor, factor: float, draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same; nothing is drawn."""
    return factor * images + (1 - factor) * images.mean((2, 3), keepdim=True)


LADDERS = {
    "seed": (jitter_contrast, (0.5 / 3, 1 / 3, 0.5, 2 / 3, 2.5 / 3)),
    "cifar_c": (lower_contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
}
