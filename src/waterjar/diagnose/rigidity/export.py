"""The index under the keys that the seed's document gave it, as plain data for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.registry import find_metric
from waterjar.errors import WaterjarError
from waterjar.stats.intervals import summarise

KEYS = {
    "adaptation_delay": "ad",
    "adaptation_epoch": "adaptation_epoch",
    "performance_deficit": "pd",
    "absolute_reliance": "sfr",
    "relative_reliance": "sfr_rel",
}
"""Key of the seed -> our name; the epoch beside the delay, because it is there without a baseline too."""


def export(result: xr.Dataset, *, confidence: float = 0.95) -> dict[str, dict[str, Any]]:
    """Cell name -> key -> {mean, std, min, max, n_seeds, confidence_interval, seeds}, and its pattern.

    `result` is what `measure` returned for a study. What is missing is None, since JSON has no NaN.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise WaterjarError(f"confidence={confidence!r}: expected a number between 0 and 1")
    if "cell" not in result.dims:
        raise WaterjarError("this is the result of one run: measure a study to export it")
    exported: dict[str, dict[str, Any]] = {}
    for cell in range(result.sizes["cell"]):
        part = result.isel(cell=cell)
        numbers: dict[str, Any] = {key: _numbers(part, name, confidence) for key, name in KEYS.items()}
        about = {"pattern": str(part["pattern"].values), "baseline": str(part["baseline"].values) or None}
        exported[str(part["cell"].values)] = {**numbers, **about}
    return exported


def _numbers(part: xr.Dataset, name: str, confidence: float) -> dict[str, Any]:
    array = part[name]
    values = np.asarray(array.values, np.float64)
    found = summarise(values, confidence=confidence, **find_metric(name).bounding)
    low, high = found.confidence_interval
    return {
        "mean": _plain(found.mean),
        "std": _plain(found.std),
        "min": _plain(found.min),
        "max": _plain(found.max),
        "n_seeds": found.n_seeds,
        "confidence_interval": None if math.isnan(low) else [low, high],
        "seeds": {str(seed): _plain(value) for seed, value in zip(array["seed"].values, values, strict=True)},
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
