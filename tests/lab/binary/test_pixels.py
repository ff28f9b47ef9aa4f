"""Bytes to floats, against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from waterjar.lab.binary.pixels import Pixels, statistics_of

pytestmark = pytest.mark.torch
IMAGES = np.random.default_rng(1).integers(0, 256, (5000, 6, 4, 3), dtype=np.uint8)
IMAGES[..., 2] //= 3


@pytest.mark.parametrize("channels", [1, 3])
def test_normalised(channels: int) -> None:
    plain = IMAGES.astype(np.float64)
    if channels == 1:
        plain = np.round(plain.mean(-1, keepdims=True))
    rows = np.arange(1, 4700, 2)
    mean, std = (getattr(plain[rows], name)(axis=(0, 1, 2)) for name in ("mean", "std"))
    found = statistics_of(IMAGES, rows, channels)
    np.testing.assert_allclose(found, (mean / 255, std / 255), rtol=1e-9)
    pixels = Pixels(IMAGES, found, channels).to(torch.device("cpu"))
    where = np.array([[3, 1], [4, 4]])
    values = pixels.normalise(pixels.gather(where))
    assert values.shape == (2, 2, channels, 6, 4)
    assert pixels.shape == (channels, 6, 4) and pixels.n_bytes == channels * 24
    expected = np.moveaxis((plain[where] - mean) / std, -1, -3)
    np.testing.assert_allclose(values.numpy(), expected, atol=1e-5)
    assert values[0].is_contiguous(memory_format=torch.channels_last)


def test_a_channel_without_spread_is_only_shifted() -> None:
    flat = np.full((2, 2, 2, 3), 51, np.uint8)
    pixels = Pixels(flat, statistics_of(flat, np.arange(2), 3), 3)
    np.testing.assert_allclose(pixels.normalise(pixels.gather(np.array([0]))).numpy(), 0.0, atol=1e-6)
