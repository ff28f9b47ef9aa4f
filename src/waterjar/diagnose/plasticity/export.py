"""Plasticity in the form of the seed's scripts: `plastic_analysis_{dataset}.pkl`.

{"history": {"Dormant Neurons (Ratio)": (Total_Steps, N_Repeats), ...}, "task_boundaries": [E1, E1 + E2, ...]}
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.seed_form import of_one_layer, steps_by_repeats

NAMES = {
    "Dormant Neurons (Ratio)": "dormant_units",
    "Active Units (Fraction)": "active_units",
    "Stable Rank": "stable_rank",
    "Effective Rank": "effective_rank",
    "Feature Norm": "feature_norm",
    "Feature Variance": "feature_variance",
    "Weight Magnitude": "weight_magnitude",
    "Weight Difference (Task)": "weight_change_task",
    "Weight Difference (Init)": "weight_change_init",
}
"""The keys of that file, and our names."""


def file_name(dataset: str) -> str:
    """What the file of a data set is called.

    >>> file_name("cifar100")
    'plastic_analysis_cifar100.pkl'
    """
    return f"plastic_analysis_{dataset}.pkl"


def history(result: xr.Dataset, *, layer: str | None = None) -> dict[str, Any]:
    """{"history": name -> (snapshot, repeat), "task_boundaries": epochs at which tasks end}, of one run's result.

    That form knows one layer: name it where several were recorded. It begins after the first training: snapshots at
    epoch 0 of a task are left out.
    """
    chosen = of_one_layer(result, layer)
    ends = chosen["total_epoch"].values[np.asarray(chosen["task_end"].values, bool)]
    return {
        "history": {key: steps_by_repeats(chosen, ours) for key, ours in NAMES.items()},
        "task_boundaries": [int(epoch) if epoch == int(epoch) else float(epoch) for epoch in ends],
    }
