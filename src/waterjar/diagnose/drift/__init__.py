"""Drift: how far a representation moves between snapshots, tasks and seeds, and what of it can still be read.

measure(run)                            (repeat, snapshot, layer, ...) of a run, or (cell, seed, ...) of a study
linear_cka(a, b), procrustes_distance(a, b), within_class_variability(features, labels), ...      of arrays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray as xr

from waterjar.diagnose.drift._cka import linear_cka
from waterjar.diagnose.drift._nc1 import within_class_variability
from waterjar.diagnose.drift._nc2 import equiangularity, equinorm, maximal_angle
from waterjar.diagnose.drift._nc3 import self_duality
from waterjar.diagnose.drift._nc4 import nearest_mean_mismatch
from waterjar.diagnose.drift._participation_ratio import participation_ratio
from waterjar.diagnose.drift._probe_accuracy import linear_probe_accuracy
from waterjar.diagnose.drift._probe_forgetting import forgotten
from waterjar.diagnose.drift._procrustes import procrustes_distance
from waterjar.diagnose.drift.cell import measure_cell
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.labelled import stamp
from waterjar.diagnose.plasticity import settings as given
from waterjar.diagnose.registry import Family
from waterjar.diagnose.snapshots import measure_each
from waterjar.errors import WaterjarError
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "Cloud",
    "equiangularity",
    "equinorm",
    "forgotten",
    "linear_cka",
    "linear_probe_accuracy",
    "maximal_angle",
    "measure",
    "nearest_mean_mismatch",
    "participation_ratio",
    "procrustes_distance",
    "self_duality",
    "within_class_variability",
]


def measure(
    source: Run | Study,
    *,
    eval_sets: Sequence[str] | None = None,
    matrix: int = 16,
    ridge: float = 0.01,
    readout: str | None = None,
) -> xr.Dataset:
    """Every drift metric at every snapshot, and `<name>_final` (repeat) for tables.

    Similarities are over (repeat, snapshot, layer, reference): to the first snapshot, to the last one of the task
    before, to the one before. `cka_matrix` and `procrustes_matrix` (repeat, layer, moment, other_moment) compare up to
    `matrix` snapshots with each other: the first, the ends of tasks, and others in between. `<name>_final` is the value
    at the last snapshot, against the first one, the mean over layers, and over the eval sets for which it is defined (a
    probe needs two classes, forgetting a task that is over); of NC3 and NC4 that of the layer that the readout reads.
    Memory does not grow with the number of snapshots.

    Parameters
    ----------
    eval_sets : whose samples are looked at, stacked; all that snapshots cover by default.
    matrix : how many snapshots are compared with each other; 0 for none.
    ridge : penalty of the linear probe.
    readout : name of the weights of the last linear map; by default the last matrix among the parameters.
    """
    matrix, ridge = given.count("matrix", matrix), given.number("ridge", ridge, 0.0)
    if eval_sets is not None:
        given.names("eval_sets", eval_sets, none_given="None for all of them")
    if readout is not None and not isinstance(readout, str):
        raise WaterjarError(f"readout={readout!r}: the name of recorded weights, or None, would be right")
    settings: dict[str, Any] = {"eval_sets": eval_sets, "matrix": matrix, "ridge": ridge, "readout": readout}
    metrics = FAMILY.metrics
    result = measure_each(source, ("features",), lambda runs: measure_cell(runs, metrics, settings))
    return stamp(result, FAMILY, settings, source)


FAMILY = Family("drift", "Drift of representations", "cell", ("features",), measure, version=2)
