"""Manifold geometry in the form of the seed's scripts: `manifold_metrics.pkl`.

    {"task_000": {"Capacity": (Steps, N_Repeats), "Radius": ..., ...}, "task_001": ...}

`Capacity` is the exact one, to which `Capacity_Relative_Error` refers; the formula (1 + R^-2) / D, which the scripts
called capacity, stands beside it as `Capacity_Approx`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.seed_form import of_one_layer, steps_by_repeats
from waterjar.errors import WaterjarError
from waterjar.run.visits import stretches

FILE = "manifold_metrics.pkl"
NAMES = {
    "Capacity": "capacity",
    "Radius": "radius",
    "Dimension": "dimension",
    "Center_Alignment": "center_alignment",
    "Axis_Alignment": "axis_alignment",
    "Center_Axis_Alignment": "center_axis_alignment",
    "Simulated_Capacity": "simulated_capacity",
    "Capacity_Relative_Error": "capacity_relative_error",
}
"""The keys of that file, and our names."""
APPROXIMATE = {"Capacity_Approx": "capacity_approx"}
"""One key more than the scripts write."""


def manifold_metrics(result: xr.Dataset, *, layer: str | None = None) -> dict[str, Any]:
    """That dictionary, of one run's result: one layer, without snapshots at epoch 0 of a task."""
    chosen = of_one_layer(result, layer)
    tasks = np.asarray(chosen["train_task_index"].values)
    if (tasks < 0).any():
        raise WaterjarError("joint training has no tasks one after the other, which are what the seed's form goes by")
    visits = chosen["visit"].values if "visit" in chosen.coords else None
    if len(stretches(tasks, visits)) > len(np.unique(tasks)):
        raise WaterjarError("a task is trained again, and the seed's form has one row per task: visits are not merged")
    found: dict[str, Any] = {}
    for task in np.unique(tasks):
        own = chosen.isel(snapshot=np.flatnonzero(tasks == task))
        found[f"task_{task:03d}"] = {key: steps_by_repeats(own, ours) for key, ours in {**NAMES, **APPROXIMATE}.items()}
    return found
