"""What is known of one snapshot of one repeat: its features, labels, classes and readout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError

NO_LABELS = Result.missing("not_recorded", "the labels of the samples were not recorded (probe_samples)")
NO_READOUT = Result.missing("not_recorded", "the weights of the readout of this layer were not recorded")


@dataclass(frozen=True)
class Readout:
    """The last linear map of a network: weights (class, unit) and bias (class)."""

    weights: NDArray[Any]
    bias: NDArray[Any]


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
            gone = Result.missing("undefined", f"{len(names)} class: at least 2 would be right", n=n)
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
                f"numbers (class, unit), with {units} units as the features have, would be right"
            )
        if self.names.dtype.kind not in "iub":
            raise WaterjarError(
                f"labels have dtype {self.names.dtype}: whole numbers, rows of the readout, would be right"
            )
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
        raise WaterjarError(f"labels have shape {given.shape}: (sample) = ({samples},) would be right")
    if given.dtype.kind not in "iubfUS":
        raise WaterjarError(f"labels have dtype {given.dtype}: whole numbers would be right")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise WaterjarError("some labels are NaN: a class for every sample would be right")
    return given


@dataclass(frozen=True)
class Moment:
    """One snapshot of one repeat, at one layer."""

    cloud: Cloud
    labels: NDArray[np.int64] | None
    """(sample), of the stacked samples."""
    readout: Readout | Result
    """Or why there is none."""
    eval_sets: dict[str, slice]
    """Which of the stacked samples belong to which eval set."""

    @cached_property
    def classes(self) -> Classes | None:
        """Means by class; None where labels were not recorded."""
        return None if self.labels is None else Classes.of(self.cloud, self.labels)


@dataclass(frozen=True)
class Curves:
    """Over the snapshots of one repeat, at one layer: how well old tasks can be told, and are told."""

    probe: dict[str, NDArray[np.float64]]
    """eval set -> accuracy of a fresh linear probe (snapshot)."""
    readout: dict[str, NDArray[np.float64]]
    """eval set -> accuracy of the network itself (snapshot), NaN where it was not recorded."""
    eval_task: dict[str, int]
    train_task: NDArray[np.int64]
    """(snapshot): position of the task in training, -1 for joint."""


@dataclass(frozen=True)
class Siblings:
    """The last snapshots of the seeds of one cell, at one layer; None where a seed has none of the same samples."""

    clouds: list[Cloud | None]
