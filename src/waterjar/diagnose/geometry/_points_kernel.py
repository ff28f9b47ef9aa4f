"""Lengths, unit vectors and manifolds of points, compiled: one pass over them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry._compiled import entry, fma

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHORT, LONG = 1e-70, 1e70  # lengths whose squares float64 holds with all their digits


@entry
def unit_vectors(x: Floats, units: Floats, norms: Floats) -> bool:
    """Write |x| (point) and x / |x| (point, dimension); False, and unfinished, where a length is not an ordinary one.

    Squares are summed in eight sums that do not wait for each other.
    """
    dimension = x.shape[1]
    whole = dimension - dimension % 8
    for i in range(x.shape[0]):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for d in range(0, whole, 8):
            s0 = fma(x[i, d], x[i, d], s0)
            s1 = fma(x[i, d + 1], x[i, d + 1], s1)
            s2 = fma(x[i, d + 2], x[i, d + 2], s2)
            s3 = fma(x[i, d + 3], x[i, d + 3], s3)
            s4 = fma(x[i, d + 4], x[i, d + 4], s4)
            s5 = fma(x[i, d + 5], x[i, d + 5], s5)
            s6 = fma(x[i, d + 6], x[i, d + 6], s6)
            s7 = fma(x[i, d + 7], x[i, d + 7], s7)
        for d in range(whole, dimension):
            s0 = fma(x[i, d], x[i, d], s0)
        norm = math.sqrt(((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)))
        if not SHORT < norm < LONG:  # nor is NaN
            return False
        norms[i] = norm
        for d in range(dimension):
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
