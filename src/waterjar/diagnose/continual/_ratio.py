"""How one performance stands to another, on a scale from -1 to 1."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.result import Floats

EPS = 1e-8


def contrast(now: Floats, reference: Floats, *, bounded: bool = True, eps: float = EPS) -> Floats:
    """(now - reference) / (|now| + |reference|); NaN where the denominator is within eps of 0.

    With `bounded=False` the denominator is now + reference, the same wherever both are above chance; below
    chance it leaves [-1, 1].
    """
    below = np.abs(now) + np.abs(reference) if bounded else now + reference
    undefined = np.abs(below) <= eps
    found: Floats = np.where(undefined, np.nan, (now - reference) / np.where(undefined, 1.0, below))
    return found
