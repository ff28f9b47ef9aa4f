"""Small images of few classes, a small network that has learned them, and networks that hide their slopes."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SIDE, CLASSES = 8, 4
MEAN, STD = (0.4, 0.5), (0.25, 0.5)


def blobs(samples: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images (sample, 2, 8, 8) in [0, 1]: a prototype of each class, and noise."""
    prototypes = np.random.default_rng(7).uniform(0.3, 0.7, (CLASSES, 2, SIDE, SIDE))
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % CLASSES
    images = prototypes[labels] + rng.normal(0, 0.12, (samples, 2, SIDE, SIDE))
    return torch.from_numpy(images.clip(0, 1)).float(), torch.from_numpy(labels)


def normalised(images: Tensor) -> Tensor:
    return (images - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


@functools.cache
def trained(seed: int = 0, steps: int = 60, width: int = 8) -> nn.Module:
    """A small convolutional network for `blobs`, which takes normalised images."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(2, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1),
            nn.Flatten(), nn.Linear(width * 16, CLASSES),
        )  # fmt: skip
        images, labels = blobs(256, seed + 100)
        optimiser = torch.optim.Adam(network.parameters(), 0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            functional.cross_entropy(network(normalised(images)), labels).backward()
            optimiser.step()
    return network


class Saturated(nn.Module):
    """Logits a thousand times as large: the cross-entropy is 0 to the last digit, and so is its slope."""

    def __init__(self, network: nn.Module, factor: float = 1000.0) -> None:
        super().__init__()
        self.network, self.factor = network, factor

    def forward(self, images: Tensor) -> Tensor:
        return self.factor * self.network(images)


class Quantised(nn.Module):
    """Pixels rounded to five levels, a step function: it has no slope anywhere."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network((images * 4).round() / 4)


class Noisy(nn.Module):
    """Noise in every answer, also in evaluation mode."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images + 0.5 * torch.randn_like(images))


class TwoClasses(nn.Module):
    """w x + b over all pixels: what an attacker can do is known in closed form."""

    def __init__(self, weights: Tensor, bias: float) -> None:
        super().__init__()
        self.weights, self.bias = nn.Parameter(weights), nn.Parameter(torch.tensor(bias, dtype=weights.dtype))

    def forward(self, images: Tensor) -> Tensor:
        score = images.flatten(1) @ self.weights.flatten() + self.bias
        return torch.stack([score, -score], 1)
