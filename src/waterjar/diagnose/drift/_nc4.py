"""NC4: the readout decides for the nearest class mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.drift.classes import Classes
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.inputs import NO_LABELS, LayerSnapshot, Readout
from waterjar.diagnose.magnitude import in_range
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


def nearest_mean_mismatch(features: ArrayLike, labels: ArrayLike, weights: ArrayLike, bias: ArrayLike) -> Result:
    """NC4: share of samples for which argmax_c (w_c h + b_c) is not argmin_c ||h - mu_c||.

    Only classes that occur among the labels compete, on both sides (Papyan, Han & Donoho 2020, fig. 7).

    Parameters
    ----------
    features : (sample, unit), labels : (sample), weights : (class, unit), bias : (class).

    >>> float(nearest_mean_mismatch([[1.0], [-1.0]], [0, 1], [[1.0], [-1.0]], [0.0, 0.0]))
    0.0
    """
    cloud = Cloud.of(features)
    return _mismatch(cloud, Classes.of(cloud, labels), Readout(np.asarray(weights), np.asarray(bias)))


def _mismatch(cloud: Cloud, classes: Classes, readout: Readout) -> Result:
    weights = classes.rows(readout.weights, cloud.features.shape[1])
    if readout.bias.shape != readout.weights.shape[:1]:
        raise WaterjarError(
            f"bias has shape {readout.bias.shape}: expected (class) = ({len(readout.weights)},), as weights have"
        )
    if isinstance(weights, Result):
        return weights
    n = len(classes.members)
    features, exponent = in_range(cloud.features)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # seen below
        scores = features @ weights.T + np.ldexp(
            readout.bias[classes.names.astype(np.int64)].astype(np.float64), -exponent
        )
    if not np.isfinite(scores).all():
        return Result.missing("not_a_number", "NaN or infinite scores", n=n)
    closeness = classes.points @ classes.means.T - 0.5 * np.square(classes.means).sum(axis=1)
    return Result(float(np.mean(scores.argmax(axis=1) != closeness.argmax(axis=1))), n=n)


@metric(
    "nc4",
    family="drift",
    long_name="neural collapse 4: share of samples that the readout does not give to the nearest class mean",
    formula="share of samples with argmax_c (w_c h + b_c) != argmin_c ||h - mu_c||",
    range=(0, 1),
    citation="Papyan, Han & Donoho 2020, fig. 7",
    needs=("features", "probe_samples/label", "weights/weights"),
    summary="nc4_final",
    symbol="NC4",
)
def _measure(snapshot: LayerSnapshot) -> Result:
    if snapshot.classes is None:
        return NO_LABELS
    if isinstance(snapshot.readout, Result):
        return snapshot.readout
    return _mismatch(snapshot.cloud, snapshot.classes, snapshot.readout)
