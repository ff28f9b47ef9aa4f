"""Plasticity in the form of the seed's scripts: `plastic_analysis_{dataset}.pkl`.

{"history": {"Dormant Neurons (Ratio)": (Total_Steps, N_Repeats), ...}, "task_boundaries": [E1, E1 + E2, ...]}
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import declare, variable
from waterjar.diagnose.registry import families
from waterjar.diagnose.seed_form import columns, numbers, of_one_layer, part, read, steps_by_repeats, write
from waterjar.errors import WaterjarError

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


def write_pickle(result: xr.Dataset, folder: str | os.PathLike[str], dataset: str, *, layer: str | None = None) -> Path:
    """Write `plastic_analysis_{dataset}.pkl` into a folder; only plain lists, dicts and numpy arrays are in it."""
    return write(history(result, layer=layer), Path(folder) / file_name(dataset))


def read_pickle(file: str | os.PathLike[str]) -> xr.Dataset:
    """Read such a file: our names over (repeat, snapshot). Nothing of it is run.

    Its steps are spread evenly over the tasks, as the layout has them: `train_task_index`, `total_epoch` and `task_end`
    follow from `task_boundaries`.
    """
    stored, where = read(file), str(file)
    tables = columns(part(stored, "history", where), NAMES, f"{where}: history")
    bounds = numbers(stored, "task_boundaries", 1, where)
    steps, repeats = tables["stable_rank"].shape
    if not len(bounds) or steps % len(bounds) or (np.diff(bounds, prepend=0.0) <= 0).any():
        raise WaterjarError(
            f"{where}: {steps} steps and the task_boundaries {bounds.tolist()[:10]}; rising ones, of tasks with as "
            "many steps each, would be right"
        )
    count = steps // len(bounds)
    starts, within = np.r_[0.0, bounds[:-1]], np.arange(1, count + 1) / count
    found: dict[str, xr.Variable] = {}
    for name, values in tables.items():
        found |= variable(name, ("repeat", "snapshot"), values.T)
    coordinates = {
        "repeat": np.arange(repeats),
        "snapshot": np.arange(steps),
        "train_task_index": ("snapshot", np.repeat(np.arange(len(bounds)), count)),
        "total_epoch": ("snapshot", (starts[:, None] + within * (bounds - starts)[:, None]).ravel()),
        "task_end": ("snapshot", np.arange(steps) % count == count - 1),
    }
    return declare(xr.Dataset(found, coordinates), families()["plasticity"].metrics.values())
