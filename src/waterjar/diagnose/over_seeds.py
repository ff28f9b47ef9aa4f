"""The mean over seeds with its interval: the one place where numbers per seed become numbers per cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.result import UNDEFINED, Codes, Floats
from waterjar.errors import unknown_name
from waterjar.run.schema import REASONS
from waterjar.stats.intervals import summarise, t_bounds

CONFIDENCE = 0.95
"""The level of an interval that goes without saying."""
BANDS = {"interval": "95 % t interval of", "std": "standard deviation of", "range": "range of"}
"""What a band around a mean may be, in words."""


@dataclass(frozen=True)
class OverSeeds:
    """A mean over the seeds with a value, its spread (ddof 1) and t interval, and why other seeds have none."""

    mean: float
    std: float
    low: float
    high: float
    n: int
    seeds: int
    missing: tuple[tuple[str, int], ...]
    """(reason, how many seeds), the most frequent first."""
    note: str = ""

    @property
    def why(self) -> str:
        """Why seeds are missing, counted: "2 of 3 never_reached"; empty where none is."""
        return ", ".join(f"{count} of {self.seeds} {reason}" for reason, count in self.missing)


def over_seeds(values: ArrayLike, reasons: Sequence[str] | None = None, confidence: float = CONFIDENCE) -> OverSeeds:
    """One number per seed -> their mean. Seeds without a value are left out and counted, by reason.

    >>> found = over_seeds([1.0, 3.0, float("nan")], ["present", "present", "never_reached"])
    >>> found.mean, found.n, found.why
    (2.0, 2, '1 of 3 never_reached')
    """
    array = np.asarray(values, np.float64)
    found = summarise(array, confidence=confidence)
    told = [REASONS[2]] * array.size if reasons is None else list(reasons)
    gone = Counter(reason for value, reason in zip(array, told, strict=True) if np.isnan(value))
    low, high = found.confidence_interval
    missing = tuple(gone.most_common())
    return OverSeeds(found.mean, found.std, low, high, found.n_seeds, array.size, missing, found.note)


def cells_over_seeds(rows: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """A tidy table (see `Diagnosis.table`) over seeds: one row per metric and cell.

    Columns family, metric, cell, name, mean, std, low, high, n, seeds, missing.
    """
    made = []
    for (family, metric, cell), part in rows.groupby(["family", "metric", "cell"], sort=False):
        found = over_seeds(part["value"].to_numpy(float), part["reason"].tolist(), confidence)
        numbers = (found.mean, found.std, found.low, found.high, found.n, found.seeds, found.why)
        made.append((family, metric, cell, part["name"].iloc[0], *numbers))
    columns = ["family", "metric", "cell", "name", "mean", "std", "low", "high", "n", "seeds", "missing"]
    return pd.DataFrame(made, columns=columns)


def mean_table(values: Floats, codes: Codes | None = None, *, band: str = "interval") -> pd.DataFrame:
    """Of values (repeat, x), one row per x: mean, low, high, n, reason. `band` is interval, std or range.

    The mean of fewer repeats would jump where one of them ends: where a repeat lacks a value there is none, and
    `reason` counts why. One repeat has no band: its bounds are NaN.
    """
    if band not in BANDS:
        raise unknown_name("band", band, BANDS)
    values = np.asarray(values, np.float64)
    there = ~np.isnan(values)
    complete = there.all(axis=0) & (len(values) > 0)
    mean = np.full(values.shape[1], np.nan)
    low, high = mean.copy(), mean.copy()
    if complete.any():
        mean[complete] = values[:, complete].mean(axis=0)
    if complete.any() and len(values) > 1:
        low[complete], high[complete] = _bounds(values[:, complete], band)
    reasons = [""] * values.shape[1]
    for i in np.flatnonzero(~complete):
        gone = [2] * int((~there[:, i]).sum()) if codes is None else codes[~there[:, i], i].tolist()
        counts = Counter(REASONS[code] for code in gone)
        reasons[i] = ", ".join(f"{n} of {len(values)} {why}" for why, n in counts.items()) or REASONS[1]
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "n": there.sum(axis=0), "reason": reasons})


def _bounds(values: Floats, band: str) -> tuple[Floats, Floats]:
    if band == "range":
        return values.min(axis=0), values.max(axis=0)
    if band == "std":
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        return mean - spread, mean + spread
    return t_bounds(values.T, CONFIDENCE)


def seed_variables(
    name: str, values: xr.Variable, codes: np.ndarray, confidence: float, units: str
) -> dict[str, xr.Variable]:
    """`<name>_mean`, `_std`, `_low`, `_high` and `_n` of a variable (repeat,), for a Dataset.

    Without any seed the mean is missing for the reason that most of them have. One seed has a mean, and neither spread
    nor interval: `undefined`.
    """
    found = over_seeds(values.values, [REASONS[code] for code in codes], confidence)
    level = f"bound of the {100 * confidence:g} % t interval of the mean"
    words = {
        "mean": "mean over seeds",
        "std": "standard deviation over seeds, ddof 1",
        "low": f"lower {level}",
        "high": f"upper {level}",
        "n": "seeds with a value",
    }
    nothing = int(np.bincount(codes).argmax()) if found.n == 0 else UNDEFINED
    made: dict[str, xr.Variable] = {}
    for end, text in words.items():
        number = np.array(float(getattr(found, end)))
        attributes = {"long_name": f"{name}: {text}", "units": "seed" if end == "n" else units}
        if found.note and end != "n":
            attributes["comment"] = found.note
        made |= variable(f"{name}_{end}", [], number, np.array(nothing * np.isnan(number), np.uint8), attributes)
    return made
