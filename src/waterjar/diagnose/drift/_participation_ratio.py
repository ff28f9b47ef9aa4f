"""How many dimensions the variance of a representation fills."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.drift.cloud import Cloud, Points
from waterjar.diagnose.drift.inputs import LayerSnapshot
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def participation_ratio(points: Points) -> Result:
    """(sum lambda)^2 / sum lambda^2 over the eigenvalues of the covariance of units.

    Both sums are traces, of C and of C^2: no eigenvalue is computed.

    Parameters
    ----------
    points : (sample, unit).

    >>> round(float(participation_ratio([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])), 12)
    2.0
    """
    cloud = Cloud.of(points)
    if cloud.missing:
        return cloud.missing
    if cloud.total == 0.0:
        return Result.missing("undefined", "features that do not vary over samples", n=len(cloud.features))
    return Result(cloud.total**2 / cloud.own_square, n=len(cloud.features))


@metric(
    "participation_ratio",
    family="drift",
    long_name="participation ratio: number of dimensions that the variance fills",
    formula="(sum lambda)^2 / sum lambda^2, lambda the eigenvalues of the covariance of units",
    range=(1, np.inf),
    citation="Gao et al. 2017",
    needs=("features",),
    summary="participation_ratio_final",
)
def _measure(snapshot: LayerSnapshot) -> Result:
    return participation_ratio(snapshot.cloud)
