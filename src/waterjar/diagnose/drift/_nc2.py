"""NC2: class means become a simplex: of the same length, at the same and the largest possible angle."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.classes import Classes
from waterjar.diagnose.drift.inputs import NO_LABELS, LayerSnapshot
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result

_SOURCE = "Papyan, Han & Donoho 2020, fig."


def equinorm(features: ArrayLike, labels: ArrayLike) -> Result:
    """NC2, lengths: standard deviation / mean over classes of ||mu_c - mu||; 0 where all are as long.

    >>> float(equinorm([[1.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -3.0]], [0, 1, 0, 1]))
    0.0
    """
    return _equinorm(Classes.of(features, labels))


def equiangularity(features: ArrayLike, labels: ArrayLike) -> Result:
    """NC2, angles: standard deviation over pairs of classes of cos(mu_c - mu, mu_c' - mu); 0 where all are the same.

    >>> float(equiangularity([[1.0], [-1.0]], [0, 1]))
    0.0
    """
    return _equiangularity(Classes.of(features, labels))


def maximal_angle(features: ArrayLike, labels: ArrayLike) -> Result:
    """NC2, largest angle: mean over pairs of classes of |cos + 1 / (C - 1)|; 0 for a simplex.

    >>> float(maximal_angle([[1.0], [-1.0]], [0, 1]))
    0.0
    """
    return _maximal_angle(Classes.of(features, labels))


def _equinorm(classes: Classes) -> Result:
    if classes.missing:
        return classes.missing
    lengths = np.linalg.norm(classes.means, axis=1)
    return Result(float(lengths.std() / lengths.mean()), n=len(classes.names))


def _equiangularity(classes: Classes) -> Result:
    cosines = _cosines(classes)
    return cosines if isinstance(cosines, Result) else Result(float(cosines.std()), n=len(classes.names))


def _maximal_angle(classes: Classes) -> Result:
    cosines = _cosines(classes)
    if isinstance(cosines, Result):
        return cosines
    return Result(float(np.abs(cosines + 1.0 / (len(classes.names) - 1)).mean()), n=len(classes.names))


def _cosines(classes: Classes) -> NDArray[np.float64] | Result:
    """Of every pair of centred class means; undefined where one of them lies in the middle."""
    if classes.missing:
        return classes.missing
    lengths = np.linalg.norm(classes.means, axis=1)
    if lengths.min() <= 1e-12 * lengths.max():
        return Result.missing("undefined", "a class mean lies in the middle: it has no direction", n=len(lengths))
    units = classes.means / lengths[:, None]
    cosines: NDArray[np.float64] = (units @ units.T)[np.triu_indices(len(units), 1)]
    return cosines


@metric(
    "nc2_equinorm",
    family="drift",
    long_name="neural collapse 2: how unequal the class means are in length",
    formula="std_c ||mu_c - mu|| / mean_c ||mu_c - mu||",
    range=(0, np.inf),
    citation=f"{_SOURCE} 2",
    needs=("features", "probe_samples/label"),
    summary="nc2_equinorm_final",
)
def _measure_equinorm(snapshot: LayerSnapshot) -> Result:
    return NO_LABELS if snapshot.classes is None else _equinorm(snapshot.classes)


@metric(
    "nc2_equiangularity",
    family="drift",
    long_name="neural collapse 2: how unequal the angles between class means are",
    formula="std over pairs of cos(mu_c - mu, mu_c' - mu)",
    range=(0, 1),
    citation=f"{_SOURCE} 3",
    needs=("features", "probe_samples/label"),
    summary="nc2_equiangularity_final",
    made_of=("cosines of class means",),
)
def _measure_equiangularity(snapshot: LayerSnapshot) -> Result:
    return NO_LABELS if snapshot.classes is None else _equiangularity(snapshot.classes)


@metric(
    "nc2_maximal_angle",
    family="drift",
    long_name="neural collapse 2: how far the angles between class means are from those of a simplex",
    formula="mean over pairs of |cos(mu_c - mu, mu_c' - mu) + 1 / (C - 1)|",
    range=(0, 2),
    citation=f"{_SOURCE} 4",
    needs=("features", "probe_samples/label"),
    summary="nc2_maximal_angle_final",
    made_of=("cosines of class means",),
)
def _measure_maximal_angle(snapshot: LayerSnapshot) -> Result:
    return NO_LABELS if snapshot.classes is None else _maximal_angle(snapshot.classes)
