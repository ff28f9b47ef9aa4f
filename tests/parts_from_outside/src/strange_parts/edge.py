"""A shortcut: the top row of the image is white."""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab.shortcuts import Fill, Shortcut, Split


class Settings(BaseModel):
    """How much of the image it takes."""

    model_config = ConfigDict(extra="forbid")
    height: int = Field(1, ge=1)


@dataclass(frozen=True)
class Edge:
    """The same place in every image."""

    height: int
    image_size: tuple[int, int]
    seed_offset: int = 0

    def region(self, sample_index: np.ndarray, split: Split) -> np.ndarray:
        """Boxes (batch, 4): top, left, bottom, right."""
        return np.tile(np.array([0, 0, self.height, self.image_size[1]]), (len(sample_index), 1))

    def inject(self, images: torch.Tensor, sample_index: np.ndarray, split: Split) -> torch.Tensor:
        """Paint it white."""
        return self._filled(images, 1.0)

    def mask(self, images: torch.Tensor, sample_index: np.ndarray, split: Split, fill: Fill = "black") -> torch.Tensor:
        """Paint it black, or grey for every other fill."""
        return self._filled(images, 0.0 if fill == "black" else 0.5)

    def _filled(self, images: torch.Tensor, value: float) -> torch.Tensor:
        painted = images.clone()
        painted[:, :, : self.height] = value
        return painted


def build(settings: Settings, image_size: tuple[int, int]) -> Shortcut:
    """For images of (height, width)."""
    return Edge(settings.height, image_size)
