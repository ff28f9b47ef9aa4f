"""A small coloured patch: 4 x 4 magenta pixels by default, at a place that hangs on the sample index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import integers
from waterjar.lab.shortcuts._fill import box_pixels, fill_boxes, paint
from waterjar.lab.shortcuts._protocol import Fill, Split, check_batch, check_split

Byte = Annotated[int, Field(ge=0, le=255)]


class Settings(BaseModel):
    """How the patch looks and where it goes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: Annotated[int, Field(ge=1)] = 4
    """Side of its square region in pixels."""
    colour: tuple[Byte, Byte, Byte] = (255, 0, 255)
    shape: Literal["square", "disc", "cross"] = "square"
    opacity: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    location: Literal["random", "top_left", "top_right", "bottom_left", "bottom_right"] = "random"
    """A place of its own for every sample, or one corner for all."""
    seed_offset: int = 42


@dataclass(frozen=True)
class Patch:
    """The patch for images of one size; a `Shortcut`."""

    settings: Settings
    image_size: tuple[int, int]

    @property
    def seed_offset(self) -> int:
        """The seed of the places."""
        return self.settings.seed_offset

    def region(self, sample_index: NDArray[np.int64], split: Split) -> NDArray[np.int64]:
        """Boxes (batch, 4): top, left, bottom, right. The one place where a location is worked out."""
        check_split(split)
        tops, lefts = (side - self.settings.size + 1 for side in self.image_size)
        if self.settings.location == "random":
            place = integers(tops * lefts, "patch", self.seed_offset, split, sample_index)
            top, left = place // lefts, place % lefts
        else:
            vertical, horizontal = self.settings.location.split("_")
            top = np.full(len(sample_index), tops - 1 if vertical == "bottom" else 0, dtype=np.int64)
            left = np.full(len(sample_index), lefts - 1 if horizontal == "right" else 0, dtype=np.int64)
        return np.stack([top, left, top + self.settings.size, left + self.settings.size], axis=1)

    def inject(self, images: torch.Tensor, sample_index: NDArray[np.int64], split: Split) -> torch.Tensor:
        """Draw the patch on all images: (1 - opacity) x + opacity colour on the pixels of its shape."""
        check_batch(images, sample_index, self.image_size)
        rows, columns = box_pixels(self.region(sample_index, split), shape_pixels(self.settings))
        colour = torch.tensor(self.settings.colour, dtype=images.dtype, device=images.device) / 255.0
        values = colour.expand(*rows.shape, 3)
        opacity = self.settings.opacity
        if opacity < 1.0:
            before = images[np.arange(len(images))[:, None], :, rows, columns]
            values = before * (1.0 - opacity) + values * opacity
        return paint(images, rows, columns, values)

    def mask(
        self, images: torch.Tensor, sample_index: NDArray[np.int64], split: Split, fill: Fill = "black"
    ) -> torch.Tensor:
        """Fill the whole region, whatever the shape in it."""
        check_batch(images, sample_index, self.image_size)
        return fill_boxes(
            images,
            self.region(sample_index, split),
            fill,
            sample_index=sample_index,
            split=split,
            seed_offset=self.seed_offset,
        )


def build(settings: Settings, image_size: tuple[int, int]) -> Patch:
    """The patch for images of (height, width), or an error where it does not fit."""
    if settings.size > min(image_size):
        raise WaterjarError(
            f"a patch of {settings.size}x{settings.size} does not fit into images of "
            f"{image_size[0]}x{image_size[1]}: choose a size up to {min(image_size)}"
        )
    return Patch(settings, image_size)


@lru_cache(maxsize=16)
def shape_pixels(settings: Settings) -> NDArray[np.int64]:
    """Pixels (2, pixel) of the shape, from the top left corner of its region.

    >>> shape_pixels(Settings(size=3, shape="cross")).T.tolist()
    [[0, 1], [1, 0], [1, 1], [1, 2], [2, 1]]
    """
    size = settings.size
    y, x = np.mgrid[:size, :size]
    from_middle_y, from_middle_x = np.abs(y - (size - 1) / 2), np.abs(x - (size - 1) / 2)
    if settings.shape == "disc":
        inside = from_middle_y**2 + from_middle_x**2 <= (size / 2) ** 2
    elif settings.shape == "cross":
        inside = np.minimum(from_middle_y, from_middle_x) <= max((size - 1) % 2 / 2, size / 6)
    else:
        inside = np.ones((size, size), dtype=np.bool_)
    pixels = np.stack(np.nonzero(inside)).astype(np.int64)
    pixels.flags.writeable = False
    return pixels
