"""One snapshot's features of one repeat, and what several metrics need of them, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.magnitude import in_range
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError

GRAM_TOLERANCE = 1e-6
"""How much rounding in the Gram matrix may change the logarithm of the effective rank, by the bound below."""

_SAFE = (1e-100, 1e100)
"""Magnitudes whose squares neither vanish nor overflow."""


@dataclass(frozen=True)
class Representation:
    """Features (sample, unit) of one snapshot and repeat. Intermediates are computed when first asked for, and kept."""

    features: NDArray[np.floating]

    @classmethod
    def of(cls, features: Features) -> Representation:
        """As it is if it is one already, so that metrics called one by one share what they need."""
        if isinstance(features, Representation):
            return features
        array = np.asarray(features)
        if array.ndim != 2:
            raise WaterjarError(f"features have shape {array.shape}: expected (sample, unit)")
        if array.dtype.kind not in "fiub":
            raise WaterjarError(f"features have dtype {array.dtype}: expected real numbers")
        return cls(array if array.dtype in (np.float32, np.float64) else array.astype(np.float64))

    @worked_out
    def missing(self) -> Result | None:
        """Why nothing can be said of these features, or None if something can."""
        n = len(self.features)
        if not self.features.size:
            return Result.missing("undefined", f"features of shape {self.features.shape} are empty", n=n)
        if not np.isfinite(self.features).all():
            bad = int(self.features.size - np.isfinite(self.features).sum())
            return Result.missing("not_a_number", f"{bad} of the features are NaN or infinite", n=n)
        return None

    @worked_out
    def _in_range(self) -> tuple[NDArray[np.float64], int]:
        alive = self.features.any(axis=0)
        return in_range(self.features if alive.all() else np.compress(alive, self.features, axis=1))

    @property
    def live(self) -> NDArray[np.float64]:
        """Features (sample, live unit) in float64 / 2^exponent, without the units that are 0 for every sample."""
        return self._in_range[0]

    @property
    def exponent(self) -> int:
        """0, unless features are so large or small that their squares would leave float64; see `in_range`."""
        return self._in_range[1]

    @worked_out
    def mean(self) -> NDArray[np.float64]:
        """Mean over samples (live unit), / 2^exponent."""
        n = len(self.live)
        mean: NDArray[np.float64] = (np.ones(n) @ self.live) / n  # a product is five times as fast as np.mean
        return mean

    @worked_out
    def singular_values(self) -> NDArray[np.float64]:
        """All min(sample, unit) of them, largest first, / 2^exponent; see `singular_values`."""
        found = singular_values(self.live) if self.live.size else np.zeros(0)
        return np.concatenate([found, np.zeros(min(self.features.shape) - len(found))])


Features = ArrayLike | Representation
"""What array functions take: (sample, unit), or a Representation, which spares computing things twice."""


def singular_values(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Singular values, largest first, by the Gram matrix of the smaller side where that is accurate enough.

    Eigenvalues of the n x n Gram matrix carry an absolute error of at most about theta = n eps lambda_1, singular
    values hence one of d_i = min(sqrt(theta), theta / 2 s_i): large ones are as good as those of an SVD, ones below
    sqrt(theta), 1e-7 s_1 or so, are noise, and 0. Where these errors could change the entropy of s / sum s, and with it
    the effective rank, by more than `GRAM_TOLERANCE`, an SVD of the matrix itself is made, four times as slow: of
    features that have collapsed to a few directions, columns of zeros, samples that occur twice. (Representations take
    dead units out first.)

    Parameters
    ----------
    matrix : (row, column), finite.

    >>> singular_values(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    array([4., 3.])
    """
    largest = max(matrix.max(), -matrix.min())
    found = _by_gram(matrix) if _SAFE[0] < largest < _SAFE[1] else None
    if found is None:
        found = linalg.svd(matrix, compute_uv=False, check_finite=False)
    return found


def _by_gram(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The singular values; None where they would not be accurate enough."""
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    eigenvalues = linalg.eigh(gram, eigvals_only=True, driver="evr", check_finite=False, overwrite_a=True)[::-1]
    noise = len(gram) * np.finfo(np.float64).eps * eigenvalues[0]
    values: NDArray[np.float64] = np.sqrt(np.where(eigenvalues > noise, eigenvalues, 0.0))
    with np.errstate(divide="ignore"):
        errors = np.minimum(math.sqrt(noise), noise / (2.0 * values))
    share = errors / values.sum()
    return values if (share * (1.0 - np.log(share))).sum() <= GRAM_TOLERANCE else None
