"""What options stand in, made by hand."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from waterjar.lab import networks
from waterjar.lab.learning import optimisers
from waterjar.lab.learning.options import Batch, Context, Rows
from waterjar.lab.learning.weights import Weights


class Numbers:
    """Images whose only pixel is the number of their row."""

    n_bytes = 4

    def inputs(self, rows: Rows) -> Tensor:
        return torch.from_numpy(rows).float()[..., None, None, None]


def surroundings(
    repeats: int = 2, *, role: str = "learner", first: int = 0, rows: bool = True, **settings: object
) -> Context:
    """Perceptrons (1x2x2 -> 4 -> 3 -> 2) with momenta of 1 everywhere; memories keep rows, or inputs."""
    seeds = tuple(range(first, first + repeats))
    nets = [networks.build("mlp", n_classes=2, image_shape=(1, 2, 2), seed=s, hidden=(4, 3), **settings) for s in seeds]
    weights = Weights(nets[0], repeats, torch.device("cpu"))
    weights.fill(nets)
    optimiser = optimisers.make("sgd", {"momentum": 0.9}, weights.values)
    optimiser.memories["velocity"].fill_(1.0)
    return Context(nets[0], weights, optimiser, seeds, role, Numbers() if rows else None)


def batch_of(rows: Rows) -> Batch:
    """Rows (repeat, sample) as a batch: every pixel is the row, labels are what is left after division by 2."""
    labels = rows % 2
    return Batch(Numbers().inputs(rows).expand(-1, -1, 1, 2, 2), torch.from_numpy(labels), labels, rows)


def rows_of(inputs: Tensor) -> Rows:
    """The rows behind inputs."""
    found: Rows = inputs[:, :, 0, 0, 0].numpy().astype(np.int64)
    return found


def logits_of(rows: Rows) -> Tensor:
    """Logits (row, row + 0.5)."""
    return torch.from_numpy(rows)[..., None] + torch.tensor([0.0, 0.5])
