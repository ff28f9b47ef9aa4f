"""Rotation about the middle of the image; what comes from outside of it is black.

`seed`: torchvision's RandomRotation(30) draws an angle from U[-30, 30] degrees, at severity 3; U[-10 s, 10 s] at
severity s. Each pixel takes the value of the nearest one, as RandomRotation does. CIFAR-10-C has no rotation.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from waterjar.probe.draws import Draws


def turn(images: Tensor, largest: float, draws: Draws) -> Tensor:
    """(sample, channel, row, column) -> the same; every image has an angle of its own, in degrees."""
    return rotate(images, torch.from_numpy(draws.uniform((), -largest, largest)))


def rotate(images: Tensor, degrees: Tensor, mode: Literal["nearest", "bilinear"] = "nearest") -> Tensor:
    """Turned against the clock by an angle (sample,) each.

    >>> rotate(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), torch.tensor([90.0]))
    tensor([[[[2., 4.],
              [1., 3.]]]])
    """
    rows, columns = images.shape[-2:]
    angle = degrees.double() * math.pi / 180
    sine, cosine, none = angle.sin(), angle.cos(), torch.zeros_like(angle)
    shape = columns / rows  # the grid goes from -1 to 1 along both sides
    along_columns = torch.stack([cosine, -sine / shape, none], 1)
    along_rows = torch.stack([sine * shape, cosine, none], 1)
    matrix = torch.stack([along_columns, along_rows], 1).to(images)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)


LADDERS = {"seed": (turn, (10.0, 20.0, 30.0, 40.0, 50.0))}
