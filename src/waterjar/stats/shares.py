"""Shares of samples, and differences of shares on the same samples, between bounds: of THIS network, on other samples.

Closed forms, which also hold for a handful of samples and where all or none are right:

| what | interval | source |
|---|---|---|
| a share k / n | (k + z²/2 ± z √(k (n - k) / n + z²/4)) / (n + z²) | Wilson 1927 |
| a mean of values in [0, 1] | z²/2 zeros and z²/2 ones added, then normal | Agresti & Coull 1998, for shares |
| a mean of differences in [-1, 1] | one -1 and one +1 added, then normal | Bonett & Price 2012, for shares |

The last two are what their authors give where values are 0 and 1 (or -1, 0 and 1), and hold for means of several such
values, too: an accuracy averaged over conditions has one value a sample. What would leave the range ends at its end.
tests/stats/test_shares.py has their coverage.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from waterjar.errors import WaterjarError
from waterjar.stats.samples import Array, check_between

Bounded = tuple[Array, Array, Array]
"""Estimate, lower and upper bound; NaN where there is no sample."""


def share_interval(right: npt.ArrayLike, n: npt.ArrayLike, *, confidence: float = 0.95) -> Bounded:
    """Wilson's interval of `right` out of `n`, element by element.

    >>> share, low, high = share_interval(9, 10)
    >>> print(f"{share:.2f} [{low:.3f}, {high:.3f}]")
    0.90 [0.596, 0.982]
    """
    k, count = np.broadcast_arrays(np.asarray(right, np.float64), np.asarray(n, np.float64))
    if ((k < 0) | (k > count)).any():
        raise WaterjarError("a share needs a number of samples, and from none to all of them that are right")
    z = _z(confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = z * np.sqrt(k * (count - k) / count + z**2 / 4)
        middle = k + z**2 / 2
        low, high = (middle - half) / (count + z**2), (middle + half) / (count + z**2)
        share = k / count
    low, high = np.where(k == 0, 0.0, low), np.where(k == count, 1.0, high)  # not 1e-17 beside it
    gone = count == 0
    return share, np.where(gone, np.nan, low), np.where(gone, np.nan, high)


def mean_share_interval(values: npt.ArrayLike, *, confidence: float = 0.95) -> Bounded:
    """The mean of values in [0, 1] over the last axis, which has one for every sample.

    >>> mean, low, high = mean_share_interval([1, 1, 0.5, 0])
    >>> print(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
    0.625 [0.240, 0.888]
    """
    table = _table(values, 0.0, 1.0)
    added = _z(confidence) ** 2 / 2
    return _bounded(table, 2 * added, added, added, _z(confidence), (0.0, 1.0))


def paired_share_difference(differences: npt.ArrayLike, *, confidence: float = 0.95) -> Bounded:
    """The mean of differences in [-1, 1] over the last axis, which has one for every sample that both were asked.

    >>> mean, low, high = paired_share_difference([1] * 9 + [-1] * 2 + [0] * 29)
    >>> print(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
    0.175 [0.006, 0.327]
    """
    return _bounded(_table(differences, -1.0, 1.0), 2.0, 0.0, 2.0, _z(confidence), (-1.0, 1.0))


def _table(values: npt.ArrayLike, low: float, high: float) -> Array:
    table = np.asarray(values, np.float64)
    if not table.ndim or (table.size and not (table.min() >= low and table.max() <= high)):
        raise WaterjarError(f"expected an array of numbers in [{low:g}, {high:g}], the last axis that of samples")
    return table


def _bounded(
    table: Array, count: float, total: float, squares: float, z: float, within: tuple[float, float]
) -> Bounded:
    """Mean and bounds, with samples added: so many, with this sum and this sum of squares."""
    n = table.shape[-1]
    if not n:
        nothing = np.full(table.shape[:-1], np.nan)
        return nothing, nothing.copy(), nothing.copy()
    mean = (table.sum(-1) + total) / (n + count)
    spread = ((table**2).sum(-1) + squares) / (n + count) - mean**2
    half = z * np.sqrt(np.maximum(spread, 0.0) / (n + count))
    return table.mean(-1), np.maximum(mean - half, within[0]), np.minimum(mean + half, within[1])


def _z(confidence: float) -> float:
    check_between(confidence, 0.0, 1.0, "confidence")
    return float(-special.ndtri((1 - confidence) / 2))
