"""Labels of samples and the classes behind them: both sides of the layout keep to the same rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, brief


def check_labels(labels: NDArray[Any], classes: int, where: str) -> NDArray[Any]:
    """Labels 0 to classes - 1, as whole numbers; floats that are whole become int64.

    >>> check_labels(np.array([0.0, 1.0]), 2, "labels")
    array([0, 1])
    """
    wrong = ~((labels >= 0) & (labels < classes)) if labels.dtype.kind != "b" else np.zeros(labels.shape, bool)
    if labels.dtype.kind == "f":
        wrong |= labels != np.floor(labels)
    if wrong.any():
        raise WaterjarError(f"{where} holds the label {labels[wrong].flat[0]}; expected 0 to {classes - 1}")
    return labels.astype(np.int64) if labels.dtype.kind == "f" else labels


def check_pairs(pairs: object, repeats: int, where: str) -> NDArray[np.int64]:
    """(repeat, member): the classes of one task per repeat, in the order of their labels; two or more of them."""
    rows = pairs if isinstance(pairs, list) else []
    sizes = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(rows) != repeats or len(sizes) != 1 or min(sizes) < 2:
        raise WaterjarError(
            f"{where}: class pairs are missing: a list of [class, class] per repeat ({repeats}) is right"
        )
    for row in rows:
        for number in row:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
                raise WaterjarError(f"{where}: {brief(number)!r} is not the number of a class")
        if len(set(row)) < len(row):
            raise WaterjarError(f"{where}: the classes {row} of one task must be different ones")
    return np.array(rows, np.int64)
