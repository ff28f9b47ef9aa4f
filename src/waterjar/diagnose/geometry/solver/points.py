"""Lengths, unit vectors and manifolds of points, compiled: one pass over them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.solver.compiled import entry
from waterjar.diagnose.geometry.solver.factor import dot

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHORT, LONG = 1e-70, 1e70  # lengths whose squares float64 holds with all their digits


@entry
def unit_vectors(x: Floats, units: Floats, norms: Floats) -> bool:
    """Write |x| (point) and x / |x| (point, dimension); False, and unfinished, where a length is not ordinary."""
    for i in range(x.shape[0]):
        norm = math.sqrt(dot(x, i, i))
        if not SHORT < norm < LONG:  # nor is NaN
            return False
        norms[i] = norm
        for d in range(x.shape[1]):
            units[i, d] = x[i, d] / norm
    return True


@entry
def runs_of(labels: Integers, owner: Integers, offsets: Integers) -> int:
    """How many runs of equal labels there are, 0 if they are not sorted; the run of each point, and where runs begin.

    offsets (point + 1) is filled as far as there are runs, and one further.
    """
    count = 0
    for i in range(labels.size):
        if i == 0 or labels[i] > labels[i - 1]:
            offsets[count] = i
            count += 1
        elif labels[i] < labels[i - 1]:
            return 0
        owner[i] = count - 1
    offsets[count] = labels.size
    return count
