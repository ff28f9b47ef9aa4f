"""From numbers per seed to numbers per cell: mean, spread, interval, and how many seeds are in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import UNDEFINED, variable
from waterjar.diagnose.rigidity.curves import Codes, Floats
from waterjar.stats.intervals import summarise

SUFFIXES = ("mean", "std", "low", "high", "n")


def summary(name: str, values: Floats, codes: Codes, confidence: float, units: str) -> dict[str, xr.Variable]:
    """`<name>_mean`, `_std` (ddof 1), `_low`, `_high` (t interval of the mean) and `_n`, over the seeds with a value.

    Seeds without a value are left out and not counted in `_n`; without any, the mean is missing for the reason that
    most of them have. One seed has a mean, and neither spread nor interval: `undefined`.
    """
    found = summarise(values, confidence=confidence)
    low, high = found.confidence_interval
    numbers = {"mean": found.mean, "std": found.std, "low": low, "high": high, "n": float(found.n_seeds)}
    words = {
        "mean": "mean over seeds",
        "std": "standard deviation over seeds, ddof 1",
        "low": f"lower bound of the {100 * confidence:g} % t interval of the mean",
        "high": f"upper bound of the {100 * confidence:g} % t interval of the mean",
        "n": "seeds with a value",
    }
    nothing = int(np.bincount(codes).argmax()) if found.n_seeds == 0 else UNDEFINED
    variables: dict[str, xr.Variable] = {}
    for suffix, number in numbers.items():
        attributes: dict[str, Any] = {"long_name": f"{name}: {words[suffix]}", "units": units}
        if suffix == "n":
            attributes["units"] = "seed"
        elif found.note:
            attributes["comment"] = found.note
        code = np.array(nothing if np.isnan(number) else 0, np.uint8)
        variables |= variable(f"{name}_{suffix}", [], np.array(number), code, attributes)
    return variables


def needed(name: str, count: float, power: float) -> dict[str, xr.Variable]:
    """`<name>_seeds_needed`: seeds whose interval would be clear of 0, were mean and spread the true ones."""
    code = np.array(UNDEFINED if np.isnan(count) else 0, np.uint8)
    attributes = {
        "long_name": f"seeds that show {name} to differ from 0 with a power of {100 * power:g} %",
        "units": "seed",
    }
    return variable(f"{name}_seeds_needed", [], np.array(count), code, attributes)
