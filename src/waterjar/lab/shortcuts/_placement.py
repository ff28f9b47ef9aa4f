"""Which samples carry the shortcut, and where a control mask goes that must not touch it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import integers, uniform
from waterjar.lab.shortcuts._protocol import Shortcut, Split, check_split


def check_rate(rate: float) -> None:
    """Refuse what is no share."""
    if not 0.0 <= rate <= 1.0:
        raise WaterjarError(f"the injection rate is {rate}: it is the share of images with the shortcut, 0 to 1")


def selected(shortcut: Shortcut, sample_index: NDArray[np.int64], split: Split, rate: float) -> NDArray[np.bool_]:
    """Which samples carry the shortcut: those whose hash, as a number in [0, 1), lies below the rate.

    So the choice is the same in every epoch and batch, all at rate 1, none at 0, and a higher rate adds
    samples to those of a lower one. The share of n samples has the deviation sqrt(rate (1 - rate) / n).
    """
    check_split(split)
    check_rate(rate)
    return uniform("carries shortcut", shortcut.seed_offset, split, sample_index) < rate


def random_region(shortcut: Shortcut, sample_index: NDArray[np.int64], split: Split) -> NDArray[np.int64]:
    """Boxes (batch, 4) of the shortcut's size elsewhere: uniform over all places that do not overlap its own.

    The control for the damage that a mask does by itself.
    """
    boxes = shortcut.region(sample_index, split)
    size = boxes[:, 2:] - boxes[:, :2]
    if len(boxes) and not (size == size[0]).all():
        raise WaterjarError("random_region needs a shortcut whose regions have one size")
    if not len(boxes):
        return boxes
    box = size[0]
    tops, lefts = (np.arange(side - length + 1) for side, length in zip(shortcut.image_size, box, strict=True))
    clear_rows = np.abs(tops[None, :] - boxes[:, 0, None]) >= box[0]
    clear_columns = np.abs(lefts[None, :] - boxes[:, 1, None]) >= box[1]
    free = (clear_rows[:, :, None] | clear_columns[:, None, :]).reshape(len(boxes), -1)
    count = free.sum(axis=1)
    if not count.all():
        raise WaterjarError(
            f"no room beside a {box[0]}x{box[1]} region for another one in an image of "
            f"{shortcut.image_size[0]}x{shortcut.image_size[1]}: use a smaller shortcut"
        )
    chosen = integers(count, "random region", shortcut.seed_offset, split, sample_index)
    place = np.argmax(np.cumsum(free, axis=1) == chosen[:, None] + 1, axis=1)
    corner = np.stack([tops[place // len(lefts)], lefts[place % len(lefts)]], axis=1)
    return np.concatenate([corner, corner + box], axis=1)
