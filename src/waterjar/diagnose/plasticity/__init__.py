"""Plasticity: can the network still learn? Features, weights and probes, snapshot by snapshot.

    measure(run)                            (repeat, snapshot, layer) of a run, or (cell, seed, ...) of a study
    effective_rank(features), ...           the same numbers of one array (sample, unit)

Repeats are never pooled into one matrix. A snapshot with NaN is NaN for its repeat and layer alone. A new metric is one
new file here: a function of a `Representation`, of `Parameters` or of a `StepSeries`.
"""

from __future__ import annotations

from typing import Annotated

import xarray as xr

from waterjar.diagnose.plasticity._active_units import active_units
from waterjar.diagnose.plasticity._dormant_units import dormant_units
from waterjar.diagnose.plasticity._effective_rank import effective_rank
from waterjar.diagnose.plasticity._feature_norm import feature_norm
from waterjar.diagnose.plasticity._feature_variance import feature_variance
from waterjar.diagnose.plasticity._gradient_norm import gradient_norm
from waterjar.diagnose.plasticity._spectral_stable_rank import spectral_stable_rank
from waterjar.diagnose.plasticity._stable_rank import stable_rank
from waterjar.diagnose.plasticity._weight_change import weight_change
from waterjar.diagnose.plasticity._weight_effective_rank import weight_effective_rank
from waterjar.diagnose.plasticity._weight_magnitude import weight_magnitude
from waterjar.diagnose.plasticity.loaded import LoadedRun
from waterjar.diagnose.plasticity.parameters import Parameters
from waterjar.diagnose.plasticity.step_series import StepSeries
from waterjar.diagnose.registry import Family
from waterjar.diagnose.representation import Representation, singular_values
from waterjar.diagnose.settings import Names, Real, Share, settings_of
from waterjar.run.faults import Expected
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "Representation",
    "active_units",
    "dormant_units",
    "effective_rank",
    "feature_norm",
    "feature_variance",
    "gradient_norm",
    "measure",
    "singular_values",
    "spectral_stable_rank",
    "stable_rank",
    "weight_change",
    "weight_effective_rank",
    "weight_magnitude",
]

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


@settings_of("plasticity")
def measure(
    source: Run | Study,
    *,
    tau: Real = 0.1,
    energy: Share = 0.99,
    eval_sets: Names | None = None,
    buffers: Annotated[tuple[str, ...], Expected("a list of names, which may be empty")] = BUFFERS,
) -> xr.Dataset:
    """Every plasticity metric at every snapshot, and `<name>_final` (repeat) for tables.

    Metrics of features are over (repeat, snapshot, layer), samples of all eval sets stacked; of weights over (repeat,
    snapshot), and per tensor over (repeat, snapshot, parameter) under `<name>_by_parameter`. `<name>_final` is the
    value at the last snapshot, the mean over layers (over matrices for weight_effective_rank). What was not recorded
    is NaN and says so. The memory needed does not grow with the number of snapshots.

    Parameters
    ----------
    tau : a unit is dormant at or below this share of its layer's mean activation.
    energy : the share of the sum of singular values of `stable_rank`.
    eval_sets : whose samples are looked at; all that snapshots cover by default.
    buffers : last parts of the names of tensors that are no parameters, and left out.
    """
    raise AssertionError


FAMILY = Family(
    "plasticity",
    "Plasticity",
    "run",
    ("features|weights",),
    {Representation: ("repeat", "snapshot", "layer"), Parameters: ("repeat", "snapshot"), StepSeries: ("repeat",)},
    LoadedRun,
    measure,
    dims=("parameter",),
    version=2,
)
