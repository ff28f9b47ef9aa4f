"""Plasticity in the form of the seed's scripts: `plastic_analysis_{dataset}.pkl`."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from waterjar.errors import WaterjarError, unknown_name

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


def history(result: xr.Dataset, *, layer: str | None = None) -> dict[str, Any]:
    """{"history": name -> (snapshot, repeat), "task_boundaries": epochs at which tasks end}, of one run's result.

    That form knows one layer: name it where several were recorded.
    """
    if "repeat" not in result.dims:
        raise WaterjarError("the seed's form holds one run: give the result of measure(run), not of a study")
    layers = [str(name) for name in result["layer"].values]
    if layer is None and len(layers) > 1:
        raise WaterjarError(f"layer=None, but {len(layers)} were recorded: one of {', '.join(layers)} would be right")
    if layer is not None and layer not in layers:
        raise unknown_name("layer", layer, layers)
    chosen = (
        result.sel(layer=layer)
        if layer is not None
        else result.isel(layer=0, drop=True, missing_dims="ignore")
        if layers
        else result
    )
    found = {}
    for name, ours in NAMES.items():
        values = chosen[ours]
        empty = "layer" in values.dims  # no features at all
        shape = (result.sizes["snapshot"], result.sizes["repeat"])
        found[name] = np.full(shape, np.nan) if empty else values.transpose("snapshot", "repeat").values
    ends = result["total_epoch"].values[np.asarray(result["task_end"].values, bool)]
    return {
        "history": found,
        "task_boundaries": [int(epoch) if epoch == int(epoch) else float(epoch) for epoch in ends],
    }


def write_pickle(result: xr.Dataset, folder: str | os.PathLike[str], dataset: str, *, layer: str | None = None) -> Path:
    """Write `plastic_analysis_{dataset}.pkl` into a folder; only plain lists, dicts and numpy arrays are in it."""
    file = Path(folder) / f"plastic_analysis_{dataset}.pkl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(history(result, layer=layer), protocol=4))
    return file
