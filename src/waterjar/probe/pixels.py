"""Images as probes take them: pixels in [0, 1], and how a network's own normalisation is put behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.errors import WaterjarError

Normalise = Callable[[Tensor], Tensor] | tuple[Any, Any] | None
"""Pixels in [0, 1] -> what the network takes: a function, (mean, std) by channel, or nothing."""


def checked_images(images: Tensor | NDArray[Any], *, single: bool = True) -> Tensor:
    """Images as a tensor of their own; what does not lie in [0, 1] is refused.

    Arrays become numbers of single precision, which models take, unless `single` is False; tensors stay what they are.

    >>> checked_images(np.full((1, 1, 2, 2), 0.5)).dtype
    torch.float32
    """
    given = images.detach() if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
    if given.ndim < 2 or not given.is_floating_point():
        raise WaterjarError(
            f"images have shape {tuple(given.shape)} and type {given.dtype}: expected pixels as floating-point numbers "
            "(sample, channel, row, column)"
        )
    if not len(given):
        raise WaterjarError("there is no image: expected at least one")
    low, high = float(given.min()), float(given.max())
    if not (low >= 0.0 and high <= 1.0):
        raise WaterjarError(
            f"images lie between {low:g} and {high:g}: expected pixels in [0, 1]. Give those of before the "
            "normalisation, and normalise=(mean, std) beside them"
        )
    if isinstance(images, Tensor):
        return given.clone()  # also out of inference mode
    return given.float() if single else given


def checked_labels(labels: Tensor | NDArray[Any] | Sequence[int], samples: int) -> Tensor:
    """Labels as whole numbers (sample,)."""
    given = labels.detach().clone() if isinstance(labels, Tensor) else torch.from_numpy(np.array(labels))
    if given.shape != (samples,) or given.is_floating_point() or given.is_complex():
        raise WaterjarError(
            f"labels have shape {tuple(given.shape)} and type {given.dtype}: expected a whole number for each of "
            f"{samples} images"
        )
    if samples and int(given.min()) < 0:
        raise WaterjarError(f"labels hold {int(given.min())}: expected the numbers of classes, from 0 on")
    return given.long()


def checked_index(index: Sequence[int] | NDArray[np.int64] | None, samples: int) -> NDArray[np.int64]:
    """The number of every image, from 0 on."""
    found = np.arange(samples) if index is None else np.asarray(index)
    if found.shape != (samples,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise WaterjarError(f"index has shape {found.shape}: expected a whole number from 0 on for each of {samples}")
    return found.astype(np.int64)


def normaliser(normalise: Normalise) -> Callable[[Tensor], Tensor]:
    """What turns pixels into what the network takes.

    Of (mean, std), each is one number or one per channel, which is the first dimension behind the sample.

    >>> normaliser((0.5, 0.25))(torch.ones(1, 1, 2, 2)).unique()
    tensor([2.])
    """
    if normalise is None:
        return _unchanged
    if callable(normalise):
        return normalise
    try:
        mean, std = (torch.as_tensor(np.asarray(part, np.float64)) for part in normalise)
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"normalise={normalise!r}: expected (mean, std), or a function of images") from error
    if mean.ndim > 1 or std.ndim > 1 or not bool((std > 0).all()) or not bool(torch.isfinite(mean).all()):
        raise WaterjarError(f"normalise={normalise!r}: expected one mean and one std above 0, or one per channel")

    def apply(images: Tensor) -> Tensor:
        parts = [_by_channel(part, images) for part in (mean, std)]
        return (images - parts[0]) / parts[1]

    return apply


def _unchanged(images: Tensor) -> Tensor:
    return images


def _by_channel(part: Tensor, images: Tensor) -> Tensor:
    own = part.to(images.device, images.dtype)
    if own.ndim and own.numel() not in (1, images.shape[1]):
        raise WaterjarError(
            f"normalise has {own.numel()} numbers for images of {images.shape[1]} channels: expected one, or as many"
        )
    return own.reshape(-1, *(1 for _ in range(images.ndim - 2))) if own.ndim else own
