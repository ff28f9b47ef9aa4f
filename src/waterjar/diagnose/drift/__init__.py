"""Drift: how far a representation moves between snapshots, tasks and seeds, and what of it can still be read.

measure(run)                            (repeat, snapshot, layer, ...) of a run, or (cell, seed, ...) of a study
linear_cka(a, b), procrustes_distance(a, b), within_class_variability(features, labels), ...      of arrays

A new metric is one new file here: a function of a `LayerSnapshot`, a `Comparison`, `Curves` or `Siblings`. Whatever
reads a `Comparison` has a `<name>_matrix`, too.
"""

from __future__ import annotations

import xarray as xr

from waterjar.diagnose.drift._cka import linear_cka
from waterjar.diagnose.drift._nc1 import within_class_variability
from waterjar.diagnose.drift._nc2 import equiangularity, equinorm, maximal_angle
from waterjar.diagnose.drift._nc3 import self_duality
from waterjar.diagnose.drift._nc4 import nearest_mean_mismatch
from waterjar.diagnose.drift._participation_ratio import participation_ratio
from waterjar.diagnose.drift._probe_forgetting import forgotten
from waterjar.diagnose.drift._procrustes import procrustes_distance
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.feeds import feeds
from waterjar.diagnose.drift.inputs import Comparison, Curves, LayerSnapshot, Siblings
from waterjar.diagnose.drift.linear_probe import linear_probe_accuracy
from waterjar.diagnose.drift.loaded import LoadedCell
from waterjar.diagnose.registry import Family
from waterjar.diagnose.settings import Names, Positive, Whole, settings_of
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


@settings_of("drift")
def measure(
    source: Run | Study,
    *,
    eval_sets: Names | None = None,
    matrix: Whole = 16,
    ridge: Positive = 0.01,
    readout: str | None = None,
) -> xr.Dataset:
    """Every drift metric at every snapshot, and `<name>_final` (repeat) for tables.

    Similarities are over (repeat, snapshot, layer, reference): to the first snapshot, to the last one of the task
    before, to the one before. `cka_matrix` and `procrustes_matrix` (repeat, layer, moment, other_moment) compare up to
    `matrix` snapshots with each other: the first, the ends of tasks, and others in between. `<name>_final` is the value
    at the last snapshot, against the first one, the mean over layers, and over the eval sets for which it is defined (a
    probe needs two classes, forgetting a task that is over); of NC3 and NC4 that of the layer that the readout reads.
    Memory does not grow with the number of snapshots. What is forgotten of a task that is trained again is counted from
    the end of its visit before, and the reference `task` is the end of the visit before.

    Parameters
    ----------
    eval_sets : whose samples are looked at, stacked; all that snapshots cover by default.
    matrix : how many snapshots are compared with each other; 0 for none.
    ridge : penalty of the linear probe.
    readout : name of the weights of the last linear map; by default the last matrix among the parameters.
    """
    raise AssertionError


FAMILY = Family(
    "drift",
    "Drift of representations",
    "cell",
    ("features",),
    {
        LayerSnapshot: ("repeat", "snapshot", "layer"),
        Comparison: ("repeat", "snapshot", "layer", "reference"),
        Curves: ("repeat", "snapshot", "layer"),
        Siblings: ("repeat", "layer"),
    },
    LoadedCell,
    measure,
    dims=("eval_set",),
    version=3,
    feeds=feeds,
)
