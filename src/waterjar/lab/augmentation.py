"""Augmentation of whole batches: different every epoch, and the same bits for a sample wherever it stands.

What happens to a sample is a hash of (seed, task, epoch in the task, sample index), never the position in a
stream: batch size, batch order, resuming and what ran before the task change nothing.

The pipeline of a training batch is

    apply (uint8 -> [0, 1])  ->  the shortcut  ->  normalise

because a patch drawn before a random crop can be cut away. Draw the parameters once per epoch and slice:

    order = epoch_order(seed, task, epoch, len(rows))
    parameters = epoch_parameters(settings, seed, task, epoch, index[order], image_size=(32, 32))
    for batch in slices:
        images = apply(data.train_images, parameters[batch], rows=rows[order[batch]])

It runs on the CPU (compiled loops, some microseconds an image); the caller moves the batch to a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from waterjar.errors import WaterjarError
from waterjar.lab import _augmentation_kernels as kernels
from waterjar.lab._augmentation_kernels import COLUMNS
from waterjar.lab.counter_hash import between, integers

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


class AugmentationSettings(BaseModel):
    """What may happen to a training image. The defaults are crop and flip alone.

    Crop and flip come last, after scale, rotation and translation (one interpolation for all of them), then
    brightness, contrast, saturation and hue in this order, each with a factor from [1 - j, 1 + j].
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    padding: Annotated[int, Field(ge=0, le=64)] = 4
    """Crop: the image is padded with so many black pixels on each side and cut at a random place."""
    flip: bool = True
    """Mirror left and right with probability 1/2."""
    rotation: Annotated[float, Field(ge=0.0, le=180.0)] = 0.0
    """Degrees, to either side."""
    translation: Fraction = 0.0
    """As a part of height and of width, to either side."""
    scale: tuple[Annotated[float, Field(gt=0.0)], Annotated[float, Field(gt=0.0)]] = (1.0, 1.0)
    brightness: Fraction = 0.0
    contrast: Fraction = 0.0
    saturation: Fraction = 0.0
    hue: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    """In turns of the colour circle, to either side."""

    @model_validator(mode="after")
    def _scale_in_order(self) -> AugmentationSettings:
        if self.scale[0] > self.scale[1]:
            raise ValueError(f"scale goes from the smaller to the larger, not {self.scale}")
        return self

    @property
    def moves(self) -> bool:
        """Whether pixels land between pixels, so that the image must be interpolated."""
        return self.rotation > 0 or self.translation > 0 or self.scale != (1.0, 1.0)

    @property
    def colours(self) -> bool:
        """Whether colours change."""
        return max(self.brightness, self.contrast, self.saturation, self.hue) > 0


CROP_FLIP = AugmentationSettings()
NONE = AugmentationSettings(padding=0, flip=False)
T1 = AugmentationSettings(rotation=15, translation=0.1, scale=(0.8, 1.2), brightness=0.2, contrast=0.2, saturation=0.2)
T2 = AugmentationSettings(
    rotation=10, translation=0.05, scale=(0.95, 1.05), brightness=0.15, contrast=0.15, saturation=0.15
)


@dataclass(frozen=True)
class AugmentationParameters:
    """What happens to each of n samples in one epoch. Slicing or indexing gives those of a batch."""

    settings: AugmentationSettings
    image_size: tuple[int, int]
    table: NDArray[np.float64]
    """(n, column), the columns named in `COLUMNS`."""

    def __len__(self) -> int:
        """How many samples."""
        return len(self.table)

    def __getitem__(self, which: slice | NDArray[np.int64]) -> AugmentationParameters:
        """The parameters of some of the samples."""
        return AugmentationParameters(self.settings, self.image_size, self.table[which])


def epoch_parameters(
    settings: AugmentationSettings,
    seed: int,
    task: int | str,
    epoch: int,
    sample_index: NDArray[np.int64],
    *,
    image_size: tuple[int, int],
) -> AugmentationParameters:
    """Draw for every sample what one epoch of one task does to it; `epoch` counts within the task.

    >>> drawn = epoch_parameters(CROP_FLIP, 42, "t2", 0, np.array([7, 8, 9]), image_size=(32, 32))
    >>> alone = epoch_parameters(CROP_FLIP, 42, "t2", 0, np.array([8]), image_size=(32, 32))
    >>> bool((drawn.table[1] == alone.table[0]).all())
    True
    """
    height, width = image_size
    if settings.padding >= min(height, width):
        raise WaterjarError(
            f"augmentation: padding {settings.padding} must be below the sides of the image, {image_size}"
        )
    side = 2 * settings.padding + 1
    turn = math.radians(settings.rotation)
    down, right = settings.translation * height, settings.translation * width
    hue = 2 * math.pi * settings.hue
    ranges = {
        "rotation": (-turn, turn),
        "shift down": (-down, down),
        "shift right": (-right, right),
        "scale": settings.scale,
        "brightness": (1 - settings.brightness, 1 + settings.brightness),
        "contrast": (1 - settings.contrast, 1 + settings.contrast),
        "saturation": (1 - settings.saturation, 1 + settings.saturation),
        "hue": (-hue, hue),
    }
    counts = {"crop top": side, "crop left": side, "flip": 2 if settings.flip else 1}
    table = np.empty((len(sample_index), len(COLUMNS)), dtype=np.float64)
    for column, name in enumerate(COLUMNS):
        words = (name, seed, task, epoch, sample_index)
        if name in counts:
            table[:, column] = integers(counts[name], *words)
        else:
            low, high = ranges[name]
            table[:, column] = low if low == high else between(low, high, *words)
    return AugmentationParameters(settings, (height, width), table)


def apply(
    images: NDArray[np.uint8], parameters: AugmentationParameters, rows: NDArray[np.int64] | None = None
) -> torch.Tensor:
    """Augment images (n, height, width, 3) uint8 to (batch, 3, height, width) float32 in [0, 1].

    `rows` picks the images of the batch out of all n, so that no batch of bytes is copied first; without it
    image k goes with parameter k. The images may be memory-mapped and read-only.
    """
    view, rows = _checked(images, rows)
    if len(parameters) != len(rows) or parameters.image_size != images.shape[1:3]:
        raise WaterjarError(
            f"augmentation: parameters for {len(parameters)} images of {parameters.image_size}, "
            f"but {len(rows)} images of {images.shape[1:3]}"
        )
    settings, table = parameters.settings, np.ascontiguousarray(parameters.table)
    out = np.empty((len(rows), 3, *parameters.image_size), dtype=np.float32)
    move = kernels.affine_crop_flip if settings.moves else kernels.crop_flip
    move(view, rows, table, settings.padding, out)
    if settings.colours:
        kernels.jitter_colours(out, table)
    return torch.from_numpy(out)


def to_float(images: NDArray[np.uint8], rows: NDArray[np.int64] | None = None) -> torch.Tensor:
    """Images as an evaluation sees them: the shapes of `apply`, nothing moved, nothing recoloured."""
    view, rows = _checked(images, rows)
    out = np.empty((len(rows), 3, *images.shape[1:3]), dtype=np.float32)
    kernels.crop_flip(view, rows, np.zeros((len(rows), len(COLUMNS))), 0, out)
    return torch.from_numpy(out)


def normalise(
    images: torch.Tensor, mean: torch.Tensor | Sequence[float], std: torch.Tensor | Sequence[float]
) -> torch.Tensor:
    """(x - mean) / std per channel of (batch, 3, height, width): the last step, after the shortcut.

    Tensors of mean and std save some microseconds a batch. Change the memory format afterwards: broadcasting
    over channels is six times slower on channels_last.

    >>> normalise(torch.ones(1, 3, 1, 1), [0.5, 0.0, 1.0], [0.25, 1.0, 1.0]).flatten().tolist()
    [2.0, 1.0, 0.0]
    """
    centre = torch.as_tensor(mean, dtype=images.dtype, device=images.device).view(-1, 1, 1)
    spread = torch.as_tensor(std, dtype=images.dtype, device=images.device).view(-1, 1, 1)
    return images.sub(centre).div_(spread)


def _checked(images: NDArray[np.uint8], rows: NDArray[np.int64] | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A read-only view of the images (one compiled version serves all) and row numbers that exist.

    The compiled loops do not look whether an index is in range: a wrong row would read foreign memory.
    """
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or not images.flags.c_contiguous:
        raise WaterjarError(
            f"augmentation takes C-contiguous uint8 images (n, height, width, 3), not {images.dtype} {images.shape}"
        )
    view = np.asarray(images).view()
    view.flags.writeable = False
    if rows is None:
        return view, np.arange(len(images), dtype=np.int64)
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if rows.ndim != 1 or (rows.size and (rows.min() < 0 or rows.max() >= len(images))):
        raise WaterjarError(f"augmentation: rows must be a list of numbers from 0 to {len(images) - 1}")
    return view, rows
