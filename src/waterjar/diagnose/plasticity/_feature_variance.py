"""How much features vary between samples."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.magnitude import scaled_back
from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result

_CANCELLED = 1e-4
"""Mean square minus squared mean loses as many digits as the variance is smaller than the mean square: at most 4."""


@metric(
    "feature_variance",
    family="plasticity",
    long_name="variance of a unit over samples, mean over units",
    formula="mean over units of the variance over samples (ddof 0)",
    range=(0, np.inf),
    citation="Plasticine, Yuan et al. 2025",
    needs=("features",),
    summary="feature_variance_final",
)
def feature_variance(features: Features) -> Result:
    """Mean over units of the variance over samples, divided by n (not n - 1): 0 for a single sample.

    Parameters
    ----------
    features : (sample, unit).

    >>> float(feature_variance([[0.0, 5.0], [2.0, 5.0]]))
    0.5
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    n, units = shot.features.shape
    squares = np.einsum("su,su->u", shot.live, shot.live) / n
    variance = squares - shot.mean**2
    unsafe = variance < _CANCELLED * squares
    if unsafe.any():  # measured from the first sample, so that a unit that never changes is exactly 0
        apart = shot.live[:, unsafe] - shot.live[0, unsafe]
        apart -= apart.mean(axis=0)
        variance[unsafe] = np.einsum("su,su->u", apart, apart) / n
    return scaled_back(float(variance.sum()) / units, 2 * shot.exponent, n=n)
