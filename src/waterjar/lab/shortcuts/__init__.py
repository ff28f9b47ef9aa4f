"""Shortcuts: cues that give the class away without the shape. One kind a file, found by its module name.

A kind is a module with a pydantic `Settings` and `build(settings, image_size) -> Shortcut`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab.shortcuts._fill import fill_boxes
from waterjar.lab.shortcuts._placement import check_rate, random_region, selected
from waterjar.lab.shortcuts._protocol import Fill, Shortcut, Split, check_batch
from waterjar.run.shelf import SHELVES

__all__ = [
    "SHELF",
    "Fill",
    "Shortcut",
    "Split",
    "build",
    "check_rate",
    "inject_where",
    "mask_random_region",
    "names",
    "parse",
    "random_region",
    "selected",
]

SHELF = SHELVES["shortcuts"]
names, parse = SHELF.names, SHELF.parse


def build(kind: str, image_size: tuple[int, int], /, **settings: object) -> Shortcut:
    """A shortcut by its name, for images of (height, width).

    >>> build("patch", (32, 32), size=4).region(np.array([7]), "train").shape
    (1, 4)
    """
    shortcut: Shortcut = SHELF.module(kind).build(parse(kind, settings), image_size)
    return shortcut


def inject_where(
    shortcut: Shortcut,
    images: torch.Tensor,
    sample_index: NDArray[np.int64],
    split: Split,
    carries: NDArray[np.bool_],
) -> torch.Tensor:
    """Inject into those images of a batch that carry the shortcut, `carries` (batch,), and no others."""
    if carries.shape != (len(images),):
        raise WaterjarError(f"{len(images)} images, but a choice of shape {carries.shape}")
    if not carries.any():
        return images
    rows = np.flatnonzero(carries)
    which = torch.from_numpy(rows).to(images.device)
    injected = shortcut.inject(images.index_select(0, which), sample_index[rows], split)
    return images.index_copy(0, which, injected)


def mask_random_region(
    shortcut: Shortcut,
    images: torch.Tensor,
    sample_index: NDArray[np.int64],
    split: Split,
    fill: Fill = "black",
) -> torch.Tensor:
    """The control: an equal area elsewhere is filled, the shortcut's own region is not touched."""
    check_batch(images, sample_index, shortcut.image_size)
    return fill_boxes(
        images,
        random_region(shortcut, sample_index, split),
        fill,
        sample_index=sample_index,
        split=split,
        seed_offset=shortcut.seed_offset,
    )
