"""From bytes on disk to what a network sees, a few images at a time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.data import channel_statistics

Rows = NDArray[np.int64]
_AT_ONCE = 4096


class Pixels:
    """Images of one split: gathered as bytes, normalised by mean and deviation of the channels.

    Bytes are (..., height, width, channel), which is channels-last already; nothing is ever copied to transpose it.
    """

    def __init__(
        self, images: NDArray[np.uint8], statistics: tuple[tuple[float, ...], tuple[float, ...]], channels: int
    ) -> None:
        self._images = images
        self.shape = (channels, int(images.shape[1]), int(images.shape[2]))
        """Channels, height, width."""
        mean, std = (torch.tensor(values, dtype=torch.float64) for values in statistics)
        std = torch.where(std > 0, std, 1.0)
        pixels = self.shape[1] * self.shape[2]
        # One row with the pattern of a whole image: broadcasting over 3 channels is six times slower.
        self._scale = (1 / (255 * std)).float().repeat(pixels)
        self._shift = (-mean / std).float().repeat(pixels)

    @property
    def n_bytes(self) -> int:
        """Of one image."""
        return int(np.prod(self.shape))

    def to(self, device: torch.device) -> Pixels:
        """Normalise there."""
        self._scale, self._shift = self._scale.to(device), self._shift.to(device)
        return self

    def gather(self, rows: Rows) -> Tensor:
        """Bytes (*rows, height, width, channel)."""
        return torch.from_numpy(_reduce(self._images[rows], self.shape[0]))

    def inputs(self, rows: Rows) -> Tensor:
        """What a network sees of rows (..., ): (..., channel, height, width)."""
        return self.normalise(self.gather(rows))

    def normalise(self, images: Tensor) -> Tensor:
        """Bytes (..., height, width, channel) to floats (..., channel, height, width), channels last in memory."""
        *lead, height, width, channels = images.shape
        flat = images.to(self._scale.device).reshape(-1, height * width * channels)
        values = torch.addcmul(self._shift, flat.float(), self._scale)
        return values.view(*lead, height, width, channels).movedim(-1, -3)


def statistics_of(images: NDArray[np.uint8], rows: Rows, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and population standard deviation of each channel over some images, on the scale [0, 1]."""
    if channels == 3:
        return channel_statistics(images, rows)
    count = np.zeros(256, dtype=np.int64)
    for start in range(0, len(rows), _AT_ONCE):
        count += np.bincount(_reduce(images[rows[start : start + _AT_ONCE]], 1).ravel(), minlength=256)
    values = np.arange(256) / 255
    mean = float(count @ values / count.sum())
    return (mean,), (float(np.sqrt(count @ (values - mean) ** 2 / count.sum())),)


def _reduce(images: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """(..., 3) as it is, or (..., 1): the mean of the three, rounded; of grey images the very same bytes.

    >>> _reduce(np.array([[[[7, 7, 7]]], [[[0, 1, 1]]]], dtype=np.uint8), 1).ravel().tolist()
    [7, 1]
    """
    if channels == 3:
        return images
    total = images.sum(axis=-1, dtype=np.uint16, keepdims=True)
    mean: NDArray[np.uint8] = ((2 * total + 3) // 6).astype(np.uint8)
    return mean
