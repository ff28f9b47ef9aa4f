"""Gaussian blur: every pixel the mean of its neighbours, weighed by exp(- d^2 / (2 sigma^2)), rows and columns in turn.

`seed`: torchvision's GaussianBlur(kernel_size=5) draws sigma from U[0.1, 2], at severity 3; U[0.1, 2 s / 3] at severity
s, with kernels of 3 3 5 7 7. The image is mirrored at its edges, which are not repeated. `cifar_c`: sigma = 0.4 0.6 0.7
0.8 1, over 4 sigma, the edges repeated, as scikit-image and scipy have it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from waterjar.errors import WaterjarError
from waterjar.probe.draws import Draws


def jitter_blur(images: Tensor, level: tuple[int, float], draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same; every image has a sigma of its own, `level` is (radius, largest)."""
    radius, largest = level
    return _blur(images, torch.from_numpy(draws.uniform((), 0.1, largest)), radius, "reflect")


def fixed_blur(images: Tensor, sigma: float, draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same; nothing is drawn."""
    return _blur(images, torch.full((len(images),), sigma, dtype=torch.float64), int(4 * sigma + 0.5), "replicate")


def _blur(images: Tensor, sigma: Tensor, radius: int, edge: Literal["reflect", "replicate"]) -> Tensor:
    """Blurred by a sigma (sample,) each. Images are the channels of one convolution, so that each has its kernel."""
    samples, channels, rows, columns = images.shape
    if edge == "reflect" and min(rows, columns) <= radius:
        raise WaterjarError(f"images of {rows} x {columns} pixels: expected more than {radius} to mirror them by")
    away = torch.arange(-radius, radius + 1, dtype=torch.float64)
    weights = torch.exp(-0.5 * (away / sigma[:, None]) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(channels, 0).to(images)
    found = images.reshape(1, samples * channels, rows, columns)
    for pad, shape in (((0, 0, radius, radius), (-1, 1)), ((radius, radius, 0, 0), (1, -1))):
        kernels = weights.reshape(samples * channels, 1, *shape)
        found = functional.conv2d(functional.pad(found, pad, mode=edge), kernels, groups=samples * channels)
    return found.reshape(images.shape)


LADDERS = {
    "seed": (jitter_blur, tuple((int(np.floor(2 * s / 3 + 0.5)), 2 * s / 3) for s in (1, 2, 3, 4, 5))),
    "cifar_c": (fixed_blur, (0.4, 0.6, 0.7, 0.8, 1.0)),
}
