"""A metric over training, seed by seed: from where to where it went, and whether that came before accuracy fell.

Half-way is the first snapshot at which a metric has moved by half of what separates its last snapshot from its first
one; of accuracy, the first one at which half is lost of what earlier tasks have lost at the end, each held against its
best until its own training ended. Both are read at the epochs of the snapshots, so that neither has the finer grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.over_seeds import OverSeeds, over_seeds
from waterjar.diagnose.registry import find_metric
from waterjar.view.report.leads._claims import Mean, moved, row
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

Floats = NDArray[np.float64]
_ACCURACIES = ("accuracy", "macro_accuracy", "task_accuracy")


class Course(NamedTuple):
    """A metric of one learner over training."""

    cell: str
    layer: str
    begin: Mean
    end: Mean
    sign: int
    """1 where it rose, -1 where it fell, 0 where seeds do not settle it."""
    first_epoch: float
    half: Floats
    """(seed,): the epoch of half-way; NaN where it never moved."""
    values: Floats
    """(seed, snapshot)"""
    epochs: Floats
    seeds: NDArray[np.bool_]
    """(repeat,): which repeats of the cell have values at two snapshots, and stand in `values`."""
    last: NDArray[np.int64]
    """(seed,): the last snapshot with a value."""
    layers: int
    """How many layers were recorded."""

    @property
    def stays(self) -> bool:
        """Whether it ends where it began."""
        return self.begin.mean == self.end.mean

    @property
    def where(self) -> str:
        """Its layer in words: "layer fc1" of one, "the last layer (fc2)" of several; empty without layers."""
        return f"the last layer ({self.layer})" if self.layers > 1 else self.layer and f"layer {self.layer}"


class Order(NamedTuple):
    """Which came first, over seeds."""

    metric: float
    """Epoch of half-way, mean over the seeds that have both."""
    accuracy: float
    lead: OverSeeds
    """How many epochs the metric was earlier."""
    sign: int
    """1 where the metric came first, -1 where accuracy did, 0 where seeds do not settle it."""


def course(model: Model, family: str, metric: str, cell: str) -> Course | None:
    """A metric of a cell's last layer that has values; None without any at two snapshots."""
    for name, one in by_cell(model.diagnosis.results[family]):
        if name == cell and metric in one:
            return _course(model, family, metric, cell, one)
    return None


def _course(model: Model, family: str, metric: str, cell: str, one: xr.Dataset) -> Course | None:
    values, layer = _last_layer(one[metric], one)
    there = np.isfinite(values)
    seeds = there.sum(axis=1) > 1
    epochs = one["total_epoch"].values.astype(float)
    if not seeds.any() or not np.isfinite(epochs).any():
        return None
    values, there = values[seeds], there[seeds]
    first, last = there.argmax(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    rows = np.arange(len(values))
    ends = values[rows, first], values[rows, last]
    level, bounding = model.diagnosis.confidence(family), find_metric(metric).bounding
    begin, end = (_mean(cell, over_seeds(part, None, level, **bounding)) for part in ends)
    _, sign = moved(ends[0].tolist(), ends[1].tolist(), level)
    half = np.array([_half_way(row, epochs, a, b) for row, a, b in zip(values, *ends, strict=True)])
    start, layers = float(np.nanmin(epochs[first])), one.sizes.get("layer", 1)
    return Course(cell, layer, begin, end, sign, start, half, values, epochs, seeds, last, layers)


def ways(found: Sequence[Course], write: Callable[[float], str]) -> str:
    """From where to where each learner went; where all began alike, that is said once."""
    begins: list[str] = []
    for one in found:
        begin = f"from {write(one.begin.mean)}" + (f" at epoch {one.first_epoch:g}" if one.first_epoch else "")
        begins.append("" if begin in begins[:1] else begin)
    return row(
        [f"{begin} to {write(one.end.mean)} in {one.cell}".strip() for begin, one in zip(begins, found, strict=True)]
    )


def _last_layer(array: xr.DataArray, one: xr.Dataset) -> tuple[Floats, str]:
    """(repeat, snapshot) of the last layer with a value, and its name."""
    if "layer" not in array.dims:
        return in_layer(array, "").astype(float), ""
    values = array.transpose("layer", "repeat", "snapshot").values.astype(float)
    able = np.flatnonzero(np.isfinite(values).any(axis=(1, 2)))
    if not able.size:
        return np.full(values.shape[1:], np.nan), ""
    return values[able[-1]], str(one["layer"].values[able[-1]])


def in_layer(array: xr.DataArray, layer: str) -> NDArray[Any]:
    """(repeat, snapshot) of a layer by its name, of a metric that has layers."""
    array = array.sel(layer=layer) if "layer" in array.dims else array
    return array.transpose("repeat", "snapshot").values


def _mean(cell: str, found: OverSeeds) -> Mean:
    return Mean(cell, found.mean, found.low, found.high, found.n)


def _half_way(row: Floats, epochs: Floats, first: float, last: float) -> float:
    """The epoch at which half of the way is gone."""
    if first == last:
        return math.nan
    way = (row - first) / (last - first)
    return _first(np.nan_to_num(way, nan=-math.inf) >= 0.5, epochs)


def _first(reached: Any, epochs: Floats) -> float:
    places = np.flatnonzero(reached)
    return float(epochs[places[0]]) if places.size else math.nan


def accuracy_half_lost(model: Model, cell: str, epochs: Floats) -> tuple[Floats, Floats]:
    """(seed,): the epoch at which half is lost of what is lost in all, and how much that is.

    NaN where there is no accuracy of earlier tasks, or none is lost.
    """
    steps = model.recorded("performance").get(cell)
    variable = next((name for name in _ACCURACIES if steps is not None and name in steps), None)
    if steps is None or variable is None:
        return np.full(0, np.nan), np.full(0, np.nan)
    lost = _lost_since(steps, variable)
    at = steps["total_epoch"].values.astype(float)
    places = [int(np.flatnonzero(at == epoch)[-1]) for epoch in epochs if (at == epoch).any()]
    shown, when = lost[:, places], at[places]
    ends = np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else math.nan for row in shown])
    halves = [
        _first(np.nan_to_num(row, nan=-math.inf) >= end / 2, when) if end > 0 else math.nan
        for row, end in zip(shown, ends, strict=True)
    ]
    return np.array(halves), ends


def _lost_since(steps: xr.Dataset, variable: str) -> Floats:
    """(repeat, step): what tasks have lost since their own training ended, mean over all but the last one.

    Each is held against its best until then, and has lost nothing before. NaN without tasks, and without an evaluation.
    """
    values = steps[variable].transpose("repeat", "eval_set", "step").values.astype(float)
    index, own = steps["train_task_index"].values, steps["eval_task"].values
    parts = []
    for place, task in enumerate(own):
        trained = np.flatnonzero(index == task) if task >= 0 else np.empty(0, int)
        if not trained.size or trained[-1] == len(index) - 1:
            continue
        until = trained[-1] + 1
        before = values[:, place, :until]
        best = np.where(np.isfinite(before), before, -np.inf).max(axis=1, keepdims=True)
        lost = np.where(np.isfinite(best), best - values[:, place], np.nan)
        lost[:, :until] = 0.0
        parts.append(lost)
    if not parts:
        return np.full((len(values), len(index)), np.nan)
    mean: Floats = np.mean(parts, axis=0)
    return mean


def which_first(model: Model, one: Course, family: str) -> Order | None:
    """Whether a metric moved before accuracy fell; None where either did not, as far as seeds show."""
    halves, drops = accuracy_half_lost(model, one.cell, one.epochs)
    if not one.sign or len(halves) != len(one.half):
        return None
    level = model.diagnosis.confidence(family)
    fall = over_seeds(drops, None, level)
    both = np.isfinite(halves) & np.isfinite(one.half)
    if fall.n < 2 or not fall.low > 0 or both.sum() < 2:
        return None
    lead, sign = moved(one.half[both].tolist(), halves[both].tolist(), level)
    return Order(float(one.half[both].mean()), float(halves[both].mean()), lead, sign)
