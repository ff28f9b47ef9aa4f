"""Numbers of pairs of streams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.result import NOT_A_NUMBER, Floats, Result

ALONE = Result.missing("undefined", "one stream has no pair")


def mean_of_pairs(matrix: Floats) -> Result:
    """Mean over pairs of different streams, each once; undefined of one stream, and where a pair has no number.

    >>> float(mean_of_pairs(np.array([[0.0, 0.5], [0.5, 0.0]])))
    0.5
    """
    upper = np.triu_indices(len(matrix), 1)
    return Result.of(matrix[upper].mean(), n=len(upper[0])) if len(matrix) > 1 else ALONE


def among(found: Floats | Result, names: Sequence[str], alive: NDArray[np.bool_] | None = None) -> Result:
    """(stream, other_stream): numbers of the streams that are alive, at their places among all; others are NaN."""
    count = len(names)
    whole = np.full((count, count), np.nan)
    if isinstance(found, Result):
        return Result.of(whole, found.code)
    there = np.flatnonzero(np.ones(count, np.bool_) if alive is None else alive)
    whole[np.ix_(there, there)] = found
    return Result.of(whole, NOT_A_NUMBER)
