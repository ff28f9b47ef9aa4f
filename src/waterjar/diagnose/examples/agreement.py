"""Error consistency: do two networks err on the same examples, beyond what their accuracies make of it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


@dataclass(frozen=True)
class Agreement:
    """How often two networks are both right or both wrong."""

    kappa: Result
    """Cohen's, of right and wrong."""
    observed: float
    expected: float
    """By their accuracies alone, were their errors independent."""
    lowest: Result
    highest: Result
    """Between which kappa must lie, given their accuracies."""


def error_consistency(one: ArrayLike, other: ArrayLike) -> Agreement:
    """Geirhos, Meding & Wichmann 2020, "Beyond accuracy: quantifying trial-by-trial behaviour by error consistency".

    c_obs is the share of samples on which both are right or both are wrong, c_exp = p q + (1 - p)(1 - q) what two
    independent networks of these accuracies would have, kappa = (c_obs - c_exp) / (1 - c_exp). Given p and q, c_obs
    lies between |p + q - 1| and 1 - |p - q|, and kappa accordingly. Where both are always right, or always wrong,
    c_exp is 1 and kappa is undefined.

    >>> found = error_consistency([1, 1, 0, 0], [1, 0, 0, 0])
    >>> found.observed, found.expected, float(found.kappa), float(found.highest)
    (0.75, 0.5, 0.5, 0.5)
    """
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.ndim != 1 or not a.size or not (np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all()):
        raise WaterjarError(
            f"answers of shapes {a.shape} and {b.shape}: expected the same samples, 1 right and 0 wrong"
        )
    p, q = float((a == 1).mean()), float((b == 1).mean())
    observed, expected = float((a == b).mean()), p * q + (1 - p) * (1 - q)

    def scaled(share: float) -> Result:
        if not 1 - expected > 1e-12:
            return Result.missing("undefined", "both are always right, or both always wrong")
        return Result((share - expected) / (1 - expected), n=len(a))

    return Agreement(scaled(observed), observed, expected, scaled(abs(p + q - 1)), scaled(1 - abs(p - q)))
