"""Manifold geometry in the form of the seed's scripts: `manifold_metrics.pkl`.

    {"task_000": {"Capacity": (Steps, N_Repeats), "Radius": ..., ...}, "task_001": ...}

`Capacity` is the exact one, to which `Capacity_Relative_Error` refers; the formula (1 + R^-2) / D, which the scripts
called capacity, stands beside it as `Capacity_Approx`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import declare, variable
from waterjar.diagnose.registry import families
from waterjar.diagnose.seed_form import columns, of_one_layer, part, read, steps_by_repeats, write
from waterjar.errors import WaterjarError

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
    found: dict[str, Any] = {}
    for task in np.unique(tasks):
        own = chosen.isel(snapshot=np.flatnonzero(tasks == task))
        found[f"task_{task:03d}"] = {key: steps_by_repeats(own, ours) for key, ours in {**NAMES, **APPROXIMATE}.items()}
    return found


def write_pickle(result: xr.Dataset, folder: str | os.PathLike[str], *, layer: str | None = None) -> Path:
    """Write `manifold_metrics.pkl` into a folder; only plain dicts and numpy arrays are in it."""
    return write(manifold_metrics(result, layer=layer), Path(folder) / FILE)


def read_pickle(file: str | os.PathLike[str]) -> xr.Dataset:
    """Read such a file: our names over (repeat, snapshot), tasks one after the other. Nothing of it is run."""
    stored, where = read(file), str(file)
    expected = [f"task_{task:03d}" for task in range(len(stored))]
    if not stored or sorted(stored) != expected:
        strange = [key for key in stored if not re.fullmatch(r"task_\d{3,}", key)] or sorted(stored)
        raise WaterjarError(f"{where} has the keys {strange[:5]}; task_000, task_001 ... would be right")
    names = {**NAMES, **(APPROXIMATE if all("Capacity_Approx" in part(stored, key, where) for key in expected) else {})}
    tables = [columns(part(stored, key, where), names, f"{where}: {key}") for key in expected]
    repeats = {table["capacity"].shape[1] for table in tables}
    if len(repeats) > 1:
        raise WaterjarError(f"{where}: tasks with {sorted(repeats)} repeats; as many in each would be right")
    found: dict[str, xr.Variable] = {}
    for name in names.values():
        found |= variable(name, ("repeat", "snapshot"), np.concatenate([table[name] for table in tables]).T)
    index = np.repeat(np.arange(len(tables)), [len(table["capacity"]) for table in tables])
    coordinates = {
        "repeat": np.arange(repeats.pop()),
        "snapshot": np.arange(len(index)),
        "train_task_index": ("snapshot", index),
        "task_end": ("snapshot", np.diff(index, append=len(tables)) > 0),
    }
    return declare(xr.Dataset(found, coordinates), families()["geometry"].metrics.values())
