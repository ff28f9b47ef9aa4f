"""What every kind of shortcut can do, and the checks that all of them share."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name

Split = Literal["train", "test"]
"""The part of the data set that a sample index counts in; images held out of "train" still do."""

Fill = Literal["black", "mean", "noise", "inpaint"]
"""What a mask puts in place of the region."""


class Shortcut(Protocol):
    """A cue planted in images (batch, 3, height, width), float in [0, 1], before normalisation.

    Everything is a function of the sample index and the split, never of the place in a batch, and no method
    changes its input. `inject` and `mask` use the one `region`.
    """

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the images it was made for."""
        ...

    @property
    def seed_offset(self) -> int:
        """The seed of its places, apart from the seed of the training."""
        ...

    def region(self, sample_index: NDArray[np.int64], split: Split) -> NDArray[np.int64]:
        """Boxes (batch, 4): top, left, bottom, right; the last two are one past the end."""
        ...

    def inject(self, images: torch.Tensor, sample_index: NDArray[np.int64], split: Split) -> torch.Tensor:
        """The images with the cue in all of them."""
        ...

    def mask(
        self, images: torch.Tensor, sample_index: NDArray[np.int64], split: Split, fill: Fill = "black"
    ) -> torch.Tensor:
        """The images with the region replaced: the same whether or not the cue was there."""
        ...


def check_split(split: str) -> None:
    """Refuse a misspelt split: it would hash to other places, and the mask would miss its patch."""
    if split not in get_args(Split):
        raise unknown_name("split", split, get_args(Split))


def check_batch(images: torch.Tensor, sample_index: NDArray[np.int64], image_size: tuple[int, int]) -> None:
    """Refuse images that are not what the shortcut was made for."""
    if images.ndim != 4 or tuple(images.shape[1:]) != (3, *image_size) or not images.is_floating_point():
        raise WaterjarError(
            f"the shortcut takes float images (batch, 3, {image_size[0]}, {image_size[1]}), "
            f"not {images.dtype} {tuple(images.shape)}"
        )
    if len(images) != len(sample_index):
        raise WaterjarError(f"{len(images)} images, but {len(sample_index)} sample indices")
