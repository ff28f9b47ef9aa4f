"""A fresh linear probe: what could be read from a representation, whatever the network's own readout does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from waterjar.diagnose.drift.classes import labels_of
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


def linear_probe_accuracy(features: ArrayLike, labels: ArrayLike, *, ridge: float = 0.01) -> Result:
    """Leave-one-out accuracy of ridge regression from features to one-hot labels, with an intercept.

    Exact and in closed form: the residual of a sample left out is e_i / (1 - h_i), h_i its leverage, so that one
    factorisation stands for n fits, and nothing is random. The penalty is `ridge` x the mean variance of the features
    along their principal directions x n.

    Undefined with fewer than two classes, and where a class has a single sample: left out, it is unknown.

    Parameters
    ----------
    features : (sample, unit), labels : (sample). Do not give a sample twice: its copy would tell the answer.

    >>> float(linear_probe_accuracy([[1.0], [1.1], [-1.0], [-1.2]], [0, 0, 1, 1]))
    1.0
    """
    right = left_out_right(features, labels, ridge=ridge)
    return right if isinstance(right, Result) else Result(float(np.mean(right)), n=len(right))


def left_out_right(features: ArrayLike, labels: ArrayLike, *, ridge: float = 0.01) -> NDArray[np.bool_] | Result:
    """(sample,): whether the probe of all other samples is right about each; or why that cannot be told.

    >>> left_out_right([[1.0], [1.1], [-1.0], [-1.2]], [0, 0, 1, 1]).tolist()
    [True, True, True, True]
    """
    if not ridge > 0.0:
        raise WaterjarError(f"ridge={ridge}: expected a number above 0")
    cloud = Cloud.of(features)
    given = labels_of(labels, len(cloud.features))
    names, members, counts = np.unique(given, return_inverse=True, return_counts=True)
    if cloud.missing:
        return cloud.missing
    n, units = cloud.features.shape
    if len(names) < 2 or counts.min() < 2:
        return Result.missing("undefined", f"{len(names)} classes, the smallest of {counts.min()} samples", n=n)
    if cloud.total == 0.0:
        return Result.missing("undefined", "features that do not vary over samples", n=n)
    x, y = cloud.centred, np.eye(len(names))[members]
    penalty = ridge * cloud.total / min(n - 1, units)
    if cloud.is_wide:
        solved = linalg.cho_solve(_factor(cloud.gram, penalty), np.eye(n), check_finite=False)
        rest = penalty * (solved @ (y - y.mean(axis=0)))
        left = penalty * np.diagonal(solved) - 1.0 / n
    else:
        solved = linalg.cho_solve(_factor(x.T @ x, penalty), x.T, check_finite=False)
        rest = y - y.mean(axis=0) - x @ (solved @ y)
        left = 1.0 - 1.0 / n - np.einsum("su,us->s", x, solved)
    told = (y - rest / left[:, None]).argmax(axis=1)
    found: NDArray[np.bool_] = told == members
    return found


def _factor(gram: NDArray[np.float64], penalty: float) -> Any:
    return linalg.cho_factor(gram + penalty * np.eye(len(gram)), lower=True, check_finite=False)
