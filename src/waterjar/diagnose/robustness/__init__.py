"""Robustness: what is left of accuracy under shifts, under attacks and without some streams.

measure(run)                                  over (repeat, snapshot, ...) of a run, or (cell, seed, ...) of a study
Robustness(models, conditions, correct)       the same numbers of anybody's answers (model, condition, sample)

`waterjar.probe.robustness` asks live models, `record_robustness` writes what it found into /probes of a run, and
metrics read it there. A new metric is one new file here: a function of a `RobustnessProbe` (one repeat at one step).
"""

from __future__ import annotations

from typing import Annotated, Literal

import xarray as xr

from waterjar.diagnose.registry import Family
from waterjar.diagnose.robustness.conditions import Condition, attack_label, condition_of, shift_label
from waterjar.diagnose.robustness.export import attack_result, shift_result, to_dataset
from waterjar.diagnose.robustness.feeds import feeds
from waterjar.diagnose.robustness.flags import FLAGS, Flag, raised_flags
from waterjar.diagnose.robustness.found import Robustness
from waterjar.diagnose.robustness.inputs import RobustnessProbe
from waterjar.diagnose.robustness.kernels import effective_robustness, right_when_clean
from waterjar.diagnose.robustness.loaded import LoadedProbes
from waterjar.diagnose.robustness.record import ROBUSTNESS_VARIABLES, record_robustness, robustness_labels
from waterjar.diagnose.settings import settings_of
from waterjar.run.faults import Expected
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "FLAGS",
    "ROBUSTNESS_VARIABLES",
    "Condition",
    "Flag",
    "Robustness",
    "RobustnessProbe",
    "attack_label",
    "attack_result",
    "condition_of",
    "effective_robustness",
    "measure",
    "raised_flags",
    "record_robustness",
    "right_when_clean",
    "robustness_labels",
    "shift_label",
    "shift_result",
    "to_dataset",
]

Model = Annotated[str, Expected("the name of a model")]


@settings_of("robustness")
def measure(
    source: Run | Study,
    *,
    model: Model | None = None,
    control: Model | None = None,
    ladder: str = "seed",
    severity: Literal[1, 2, 3, 4, 5, "all"] = 3,
    attack: str = "worst",
    epsilon: float | str | None = None,
) -> xr.Dataset:
    """Every metric at every step at which a probe was taken, and `<name>_final` (repeat) for tables.

    Numbers per step are those of one ladder and severity, of one attack and epsilon; curves over all severities, and
    tables of all attacks, stand beside them. Bounds are over samples, and speak of this network; how sure the method
    is, its seeds tell.

    Parameters
    ----------
    model : the model that is looked at; the first that was recorded by default.
    control : what it is held against; `ensemble` by default, else `best_stream`, else the first other one.
    ladder : `seed` or `cifar_c`, or `own` for shifts that were passed as functions.
    severity : 1 to 5, or `all`: the mean over all. The seed document's own values are severity 3.
    attack : the attack of the one number per step; `worst` is the worst of all, image by image.
    epsilon : as it was given, 0.03 or "8/255"; the first that was recorded by default.
    """
    raise AssertionError


FAMILY = Family(
    "robustness",
    "Robustness",
    "run",
    ("probes/robustness|probes/stream_failure",),
    {RobustnessProbe: ("repeat", "snapshot")},
    LoadedProbes,
    measure,
    dims=("model", "other_model", "ladder", "shift", "severity", "attack", "eps", "failure", "flag"),
    feeds=feeds,
)
