"""The mean over seeds with its interval: the one place where numbers per seed become numbers per cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import Metric, find_metric
from waterjar.diagnose.result import UNDEFINED, Codes, Floats
from waterjar.errors import unknown_name
from waterjar.run.schema import REASONS
from waterjar.stats.intervals import BCA_FROM, INTERVALS, UNBOUNDED, beyond, ranged_bounds, scale_of, summarise

CONFIDENCE = 0.95
"""The level of an interval that goes without saying."""
BANDS = {"interval": "interval", "std": "standard deviation", "range": "range"}
"""What a band around a mean may be, in words; of an interval `interval_words` says which."""
_SCALES = {
    "t_logit": "of bounded values on the logit scale",
    "t_log": "of positive values on the log scale",
    "bca_expanded": "from ten seeds on by BCa bootstrap where it says so",
}


@dataclass(frozen=True)
class OverSeeds:
    """A mean over the seeds with a value, its spread (ddof 1) and interval, and why other seeds have none."""

    mean: float
    std: float
    low: float
    high: float
    n: int
    seeds: int
    missing: tuple[tuple[str, int], ...]
    """(reason, how many seeds), the most frequent first."""
    note: str = ""
    interval: str = "t"
    """How the mean is bounded: a key of `stats.intervals.INTERVALS`."""

    @property
    def why(self) -> str:
        """Why seeds are missing, counted: "2 of 3 never_reached"; empty where none is."""
        return ", ".join(f"{count} of {self.seeds} {reason}" for reason, count in self.missing)


def over_seeds(
    values: ArrayLike,
    reasons: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
    within: tuple[float, float] = UNBOUNDED,
    method: str = "t",
) -> OverSeeds:
    """One number per seed -> their mean. Seeds without a value are left out and counted, by reason.

    `within` is the range that the values cannot leave, nor the interval then (`Metric.own_range`); `method` is one of
    `stats.mean_interval`.

    >>> found = over_seeds([1.0, 3.0, float("nan")], ["present", "present", "never_reached"])
    >>> found.mean, found.n, found.why
    (2.0, 2, '1 of 3 never_reached')
    """
    array = np.asarray(values, np.float64)
    found = summarise(array, confidence=confidence, within=within, method=method)
    told = [REASONS[2]] * array.size if reasons is None else list(reasons)
    gone = Counter(reason for value, reason in zip(array, told, strict=True) if np.isnan(value))
    low, high = found.confidence_interval
    missing = tuple(gone.most_common())
    return OverSeeds(found.mean, found.std, low, high, found.n_seeds, array.size, missing, found.note, found.method)


def interval_of(metric: Metric, n: int) -> str:
    """How the mean of a metric over n seeds is bounded, where no value leaves its range."""
    return "bca_expanded" if metric.interval == "auto" and n >= BCA_FROM else scale_of(metric.own_range)


def interval_words(methods: Iterable[str], confidence: float | Iterable[float] = CONFIDENCE) -> str:
    """The intervals of a table or figure in words, from how each was made (its column `interval`), and at which level.

    >>> interval_words(["t"]), interval_words(["t_logit"], 0.9)
    ('95 % t interval', '90 % t interval on the logit scale')
    >>> interval_words(["t", "t_logit", "t_log"])
    '95 % t interval (of bounded values on the logit scale, of positive values on the log scale)'
    >>> interval_words(["t"], [0.95, 0.9, 0.95])
    '90 or 95 % t interval'
    """
    used = [name for name in INTERVALS if name in set(methods)] or ["t"]
    levels = {confidence} if isinstance(confidence, float) else set(confidence)
    level = " or ".join(f"{100 * one:g}" for one in sorted(levels)) + " %"
    if len(used) == 1:
        return f"{level} {INTERVALS[used[0]]}"
    return f"{level} t interval ({', '.join(text for name, text in _SCALES.items() if name in used)})"


def band_words(band: str, methods: Iterable[str], confidence: float | Iterable[float] = CONFIDENCE) -> str:
    """What a band around a mean is: `interval`, made in these ways, `std` or `range`.

    >>> band_words("interval", ["t_logit", ""]), band_words("std", [])
    ('95 % t interval on the logit scale', 'standard deviation')
    """
    return interval_words(methods, confidence) if band == "interval" else BANDS[band]


def recorded_range(variable: str) -> tuple[float, float]:
    """The range of a recorded variable, by its name in the schema: of an accuracy, and of a loss.

    A loss may be below 0, such as that of a density: where one is, intervals are as of values without a range.

    >>> recorded_range("macro_accuracy"), recorded_range("loss"), recorded_range("return")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    if variable.endswith("accuracy"):
        return 0.0, 1.0
    return (0.0, math.inf) if variable.endswith("loss") else UNBOUNDED


def cells_over_seeds(
    rows: pd.DataFrame, confidence: float = CONFIDENCE, declared: Callable[[str], Metric] = find_metric
) -> pd.DataFrame:
    """A tidy table (see `Diagnosis.table`) over seeds: one row per metric and cell.

    Columns family, metric, cell, mean, std, low, high, n, seeds, missing, interval. `declared` gives a metric by
    name (`Diagnosis.declared`: as it was measured), whose range its interval keeps to.
    """
    made = []
    for (family, metric, cell), part in rows.groupby(["family", "metric", "cell"], sort=False):
        found = over_seeds(
            part["value"].to_numpy(float), part["reason"].tolist(), confidence, **declared(str(metric)).bounding
        )
        numbers = (found.mean, found.std, found.low, found.high, found.n, found.seeds, found.why, found.interval)
        made.append((family, metric, cell, *numbers))
    columns = ["family", "metric", "cell", "mean", "std", "low", "high", "n", "seeds", "missing", "interval"]
    return pd.DataFrame(made, columns=columns)


def mean_table(
    values: Floats,
    codes: Codes | None = None,
    *,
    band: str = "interval",
    within: tuple[float, float] = UNBOUNDED,
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """Of values (repeat, x), one row per x: mean, low, high, n, reason, interval.

    `band` is interval (at the level `confidence`), std or range. An interval does not leave `within`, where the values
    cannot, and `interval` says how it was made; it is empty of another band, and where there is none.

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
        low[complete], high[complete] = _bounds(values[:, complete], band, within, confidence)
    reasons = [""] * values.shape[1]
    for i in np.flatnonzero(~complete):
        gone = [2] * int((~there[:, i]).sum()) if codes is None else codes[~there[:, i], i].tolist()
        counts = Counter(REASONS[code] for code in gone)
        reasons[i] = ", ".join(f"{n} of {len(values)} {why}" for why, n in counts.items()) or REASONS[1]
    made = np.where(beyond(values, within).any(axis=0), "t", scale_of(within)).astype(object)
    made = np.where(np.isnan(low) | (band != "interval"), "", made)
    columns = {"mean": mean, "low": low, "high": high, "n": there.sum(axis=0), "reason": reasons, "interval": made}
    return pd.DataFrame(columns)


def _bounds(values: Floats, band: str, within: tuple[float, float], confidence: float) -> tuple[Floats, Floats]:
    if band == "range":
        return values.min(axis=0), values.max(axis=0)
    if band == "std":
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        return mean - spread, mean + spread
    return ranged_bounds(values.T, confidence, within)


def seed_variables(metric: Metric, values: xr.Variable, codes: np.ndarray, confidence: float) -> dict[str, xr.Variable]:
    """`<name>_mean`, `_std`, `_low`, `_high` and `_n` of a metric's one number per seed (repeat,), for a Dataset.

    How the mean is bounded may differ between cells: `<name>_interval` says it of each, as a key of `INTERVALS`.
    Without any seed the mean is missing for the reason that most of them have. One seed has a mean, and neither spread
    nor interval: `undefined`.
    """
    name, told = metric.scalar, [REASONS[code] for code in codes]
    found = over_seeds(values.values, told, confidence, **metric.bounding)
    level = f"bound of the {100 * confidence:g} % interval of the mean"
    words = {
        "mean": "mean over seeds",
        "std": "standard deviation over seeds, ddof 1",
        "low": f"lower {level}",
        "high": f"upper {level}",
        "n": "seeds with a value",
    }
    nothing = int(np.bincount(codes).argmax()) if found.n == 0 else UNDEFINED
    ways = ", ".join(f"{key}: {words}" for key, words in INTERVALS.items())
    about = {"long_name": f"{name}: how the mean is bounded", "comment": ways}
    made = {f"{name}_interval": xr.Variable([], np.array(found.interval, object), about)}
    for end, text in words.items():
        number = np.array(float(getattr(found, end)))
        attributes = {"long_name": f"{name}: {text}", "units": "seed" if end == "n" else metric.units}
        if found.note and end != "n":
            attributes["comment"] = found.note
        made |= variable(f"{name}_{end}", [], number, np.array(nothing * np.isnan(number), np.uint8), attributes)
    return made
