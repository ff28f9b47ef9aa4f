"""Accuracy above chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.result import Floats
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import check_accuracies


def above_chance(accuracy: ArrayLike, chance: ArrayLike, *, floor_at_chance: bool = False) -> Floats:
    """P = (A - c) / (1 - c): 1 where all is right, 0 at chance, below 0 where it is worse than chance.

    Parameters
    ----------
    chance : c, 1 / (number of classes the network chooses among); broadcasts against `accuracy`.
    floor_at_chance : values below chance count as chance.

    >>> above_chance([1.0, 0.75, 0.5, 0.25], 0.5)
    array([ 1. ,  0.5,  0. , -0.5])
    """
    c = np.asarray(chance, np.float64)
    if not ((c >= 0) & (c < 1)).all():
        raise WaterjarError(f"chance={c}: expected 0 <= chance < 1, as 1 / (number of classes)")
    raw = np.asarray(accuracy, np.float64)
    check_accuracies(raw, "accuracy")
    corrected = (raw - c) / (1 - c)
    return np.maximum(corrected, 0.0) if floor_at_chance else corrected
