"""NC3: the readout becomes the class means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.moment import NO_LABELS, Classes, Moment
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
    return _of_classes(Classes.of(features, labels), np.asarray(weights))


def _of_classes(classes: Classes, weights: NDArray[Any]) -> Result:
    if classes.missing:
        return classes.missing
    n = len(classes.members)
    if classes.names[0] < 0 or classes.names[-1] >= len(weights):
        return Result.missing("undefined", f"labels outside the {len(weights)} rows of the readout", n=n)
    rows = weights[classes.names].astype(np.float64)
    length = np.linalg.norm(rows)
    if not np.isfinite(length):
        return Result.missing("not_a_number", "NaN or infinite weights", n=n)
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
def _measure(moment: Moment) -> Result:
    if moment.classes is None:
        return NO_LABELS
    return moment.readout if isinstance(moment.readout, Result) else _of_classes(moment.classes, moment.readout.weights)
