"""Classes of the samples of a representation, and where their means are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


@dataclass(frozen=True)
class Classes:
    """Class means of a representation; `missing` says why there are none."""

    names: NDArray[np.int64]
    counts: NDArray[np.int64]
    members: NDArray[np.int64]
    """(sample): which of the classes a sample belongs to."""
    means: NDArray[np.float64]
    """(class, unit), minus the mean of the class means."""
    points: NDArray[np.float64]
    """(sample, unit), minus the mean of the class means."""
    missing: Result | None

    @classmethod
    def of(cls, features: ArrayLike | Cloud, labels: ArrayLike) -> Classes:
        """Every class counts the same, however many samples it has."""
        cloud = Cloud.of(features)
        given = labels_of(labels, len(cloud.features))
        names, members, counts = np.unique(given, return_inverse=True, return_counts=True)
        nothing = np.empty((0, 0))
        if cloud.missing:
            return cls(names, counts, members, nothing, nothing, cloud.missing)
        n = len(given)
        if len(names) < 2:
            gone = Result.missing("undefined", f"{len(names)} class: expected at least 2", n=n)
            return cls(names, counts, members, nothing, nothing, gone)
        sums = np.zeros((len(names), cloud.centred.shape[1]))
        for i in range(len(names)):
            sums[i] = cloud.centred[members == i].sum(axis=0)
        means = sums / counts[:, None]
        middle = means.mean(axis=0)
        means -= middle
        # rounding of a sum of n numbers is all there is between classes whose means are the same
        spread, noise = float(np.vdot(means, means)), n * np.finfo(np.float64).eps
        gone_or_not = None
        if spread <= noise**2 * cloud.total:
            gone_or_not = Result.missing("undefined", "all classes have the same mean", n=n)
        return cls(names, counts, members, means, cloud.centred - middle, gone_or_not)

    def rows(self, weights: NDArray[Any], units: int) -> NDArray[np.float64] | Result:
        """The weights (class, unit) of the classes that occur; an error, or why there are none, if labels name no rows.

        `units` is the width of the features.
        """
        if weights.ndim != 2 or weights.shape[1] != units or weights.dtype.kind not in "fiub":
            raise WaterjarError(
                f"weights have shape {weights.shape} and dtype {weights.dtype}: "
                f"expected numbers (class, unit), with {units} units as the features have"
            )
        if self.names.dtype.kind not in "iub":
            raise WaterjarError(f"labels have dtype {self.names.dtype}: expected whole numbers, rows of the readout")
        if self.missing:
            return self.missing
        if self.names[0] < 0 or self.names[-1] >= len(weights):
            n = len(self.members)
            return Result.missing("undefined", f"labels outside the {len(weights)} rows of the readout", n=n)
        return weights[self.names.astype(np.int64)].astype(np.float64)


def labels_of(labels: ArrayLike, samples: int) -> NDArray[Any]:
    """As an array (sample) of numbers or text; an error if they cannot be that."""
    given = np.asarray(labels)
    if given.shape != (samples,):
        raise WaterjarError(f"labels have shape {given.shape}: expected (sample) = ({samples},)")
    if given.dtype.kind not in "iubfUS":
        raise WaterjarError(f"labels have dtype {given.dtype}: expected whole numbers")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise WaterjarError("some labels are NaN: expected a class for every sample")
    return given
