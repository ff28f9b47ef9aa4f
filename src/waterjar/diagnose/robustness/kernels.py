"""Robustness as numbers of answers: what is retained, and what is left when clean accuracy is taken out of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy import special

from waterjar.diagnose.result import Floats
from waterjar.errors import WaterjarError

Bools = NDArray[np.bool_]
FEWEST_REFERENCES = 3


def right_when_clean(clean: npt.ArrayLike) -> Bools:
    """(sample,): whether ALL models were right of the clean sample, from (model, sample).

    Among these every model starts from an accuracy of 1: what they keep of them is compared at equal clean accuracy.

    >>> right_when_clean([[1, 1, 0], [1, 0, 0]]).tolist()
    [True, False, False]
    """
    table = np.asarray(clean).astype(np.bool_)
    if table.ndim != 2:
        raise WaterjarError(f"clean answers have shape {table.shape}: expected (model, sample)")
    return np.asarray(table.all(0))


def effective_robustness(
    clean: npt.ArrayLike,
    shifted: npt.ArrayLike,
    reference_clean: npt.ArrayLike,
    reference_shifted: npt.ArrayLike,
) -> Floats:
    """Accuracy under a shift less what the clean accuracy predicts (Taori et al. 2020, eq. 1).

    The prediction is a line through the reference models, logit(shifted) = a + b logit(clean), by least squares: models
    that are merely better are better under shifts, too. The last axis of the references is that of models, all others
    are those of `clean`. NaN with fewer than three references, or where all of them have the same clean accuracy.
    Accuracies of 0 and 1 have no logit: see `smoothed`.

    >>> float(effective_robustness(0.8, 0.7, [0.6, 0.7, 0.9], [0.6, 0.7, 0.9]).round(6))
    -0.1
    """
    own, under = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    x, y = (special.logit(np.asarray(part, np.float64)) for part in (reference_clean, reference_shifted))
    if x.shape[-1] < FEWEST_REFERENCES:
        return np.full(np.broadcast_shapes(own.shape, under.shape), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        x_mean, y_mean = x.mean(-1), y.mean(-1)
        away = x - x_mean[..., None]
        spread = (away**2).sum(-1)
        slope = np.where(spread > 1e-12, (away * y).sum(-1) / spread, np.nan)
        found: Floats = under - special.expit(y_mean + slope * (special.logit(own) - x_mean))
    return found


def smoothed(right: npt.ArrayLike, n: int) -> Floats:
    """Shares with half a sample more on either side, (k + 1/2) / (n + 1): none is 0 or 1.

    >>> smoothed([0, 10], 10).round(3).tolist()
    [0.045, 0.955]
    """
    return (np.asarray(right, np.float64) + 0.5) / (n + 1)
