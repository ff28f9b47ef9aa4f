"""NC3: the readout becomes the class means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.classes import Classes
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.inputs import NO_LABELS, LayerSnapshot
from waterjar.diagnose.magnitude import in_range
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def self_duality(features: ArrayLike, labels: ArrayLike, weights: ArrayLike) -> Result:
    """NC3 = ||W / ||W||_F - M / ||M||_F||_F^2, M the centred class means (Papyan, Han & Donoho 2020, fig. 5).

    0 where the readout is the class means up to scale, 2 where it is orthogonal to them.

    Parameters
    ----------
    features : (sample, unit), labels : (sample), weights : (class, unit). A label is a row of the weights; rows of
        classes that do not occur are left out.

    >>> float(self_duality([[1.0, 0.0], [-1.0, 0.0]], [0, 1], [[2.0, 0.0], [-2.0, 0.0]]))
    0.0
    """
    cloud = Cloud.of(features)
    return _duality(cloud, Classes.of(cloud, labels), np.asarray(weights))


def _duality(cloud: Cloud, classes: Classes, weights: NDArray[Any]) -> Result:
    rows = classes.rows(weights, cloud.features.shape[1])
    if isinstance(rows, Result):
        return rows
    n = len(classes.members)
    if not np.isfinite(rows).all():
        return Result.missing("not_a_number", "NaN or infinite weights", n=n)
    rows, _ = in_range(rows)
    length = np.linalg.norm(rows)
    if length == 0.0:
        return Result.missing("undefined", "all weights of the readout are zero", n=n)
    return Result(float(np.square(rows / length - classes.means / np.linalg.norm(classes.means)).sum()), n=n)


@metric(
    "nc3",
    family="drift",
    long_name="neural collapse 3: distance of the readout from the class means",
    formula="||W / ||W||_F - M / ||M||_F||_F^2",
    range=(0, 4),
    citation="Papyan, Han & Donoho 2020, fig. 5",
    needs=("features", "probe_samples/label", "weights/weights"),
    summary="nc3_final",
    symbol="NC3",
)
def _measure(snapshot: LayerSnapshot) -> Result:
    if snapshot.classes is None:
        return NO_LABELS
    if isinstance(snapshot.readout, Result):
        return snapshot.readout
    return _duality(snapshot.cloud, snapshot.classes, snapshot.readout.weights)
