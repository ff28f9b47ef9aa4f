"""Plasticity over the snapshots of a run: features layer by layer, weights tensor by tensor, each read once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import NOT_RECORDED, UNDEFINED, variable
from waterjar.diagnose.plasticity.parameters import Measured, Parameters, Tensor, tensors_of
from waterjar.diagnose.plasticity.representation import Representation
from waterjar.diagnose.plasticity.stepwise import Series
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.snapshots import Recording, repeat_blocks, settings_for, task_references
from waterjar.run.reader import Run

BY_PARAMETER = "_by_parameter"
_REPEAT_SNAPSHOT = ("repeat", "snapshot")


class Table:
    """Values of one variable, filled in place by place; what is never filled in was not recorded."""

    def __init__(self, dims: tuple[str, ...], shape: tuple[int, ...]) -> None:
        self.dims = dims
        self.values = np.full(shape, np.nan)
        self.reasons = np.full(shape, NOT_RECORDED, np.uint8)

    def put(self, place: tuple[int, ...], result: Result) -> None:
        """One result."""
        self.values[place], self.reasons[place] = result.value, result.code

    def labelled(self, name: str, attributes: dict[str, Any] | None = None) -> dict[str, xr.Variable]:
        """As variables of a Dataset."""
        return variable(name, self.dims, self.values, self.reasons, attributes)


def measure_run(run: Run, metrics: dict[str, Metric], settings: dict[str, Any]) -> xr.Dataset:
    """All metrics of one run over (repeat, snapshot, ...), and under `<name>_final` one number per repeat."""
    recording = Recording(run)
    layers = recording.layers
    series = {name: m.compute(recording) for name, m in metrics.items() if m.needs[0].startswith(("train", "probes"))}
    labels = {*recording.labels("weights")}
    labels |= {label for layer in layers for label in recording.labels(f"features/{layer}")}
    labels |= {
        label
        for n, found in series.items()
        if found and metrics[n].needs[0].startswith("probes")
        for label in found.labels
    }
    snapshots = sorted(labels)
    place = {label: i for i, label in enumerate(snapshots)}

    found = _of_features(recording, layers, place, _taking("features", metrics), settings)
    found |= _of_weights(recording, place, _taking("weights", metrics), settings)
    found |= _of_steps(len(recording.seeds), series, place, metrics)
    coordinates: dict[str, Any] = {"repeat": np.arange(len(run.seeds)), "seed": ("repeat", run.seeds)}
    coordinates |= {"snapshot": snapshots, **recording.coordinates(snapshots), "layer": np.array(layers, object)}
    if recording.labels("weights"):
        names = [tensor.name for tensor in tensors_of(recording, settings["buffers"])]
        coordinates["parameter"] = ("parameter", np.array(names, object), {"long_name": "name of the weight tensor"})
    return xr.Dataset(found, coordinates)


def _taking(group: str, metrics: dict[str, Metric]) -> dict[str, Metric]:
    return {name: metric for name, metric in metrics.items() if metric.needs[0].split("/")[0] == group}


def _of_features(
    recording: Recording, layers: list[str], place: dict[int, int], metrics: dict[str, Metric], settings: dict[str, Any]
) -> dict[str, xr.Variable]:
    shape = (len(recording.seeds), len(place), len(layers))
    tables = {name: Table((*_REPEAT_SNAPSHOT, "layer"), shape) for name in metrics}
    given = {name: settings_for(metric, settings) for name, metric in metrics.items()}
    for k, layer in enumerate(layers):
        group = f"features/{layer}"
        sets = recording.eval_sets(group, settings["eval_sets"])
        for label, r, features in feature_rows(recording, layer):
            shot = Representation.of(features[sets].reshape(-1, features.shape[-1]))
            for name, metric in metrics.items():
                tables[name].put((r, place[label], k), metric.compute(shot, **given[name]))
    found: dict[str, xr.Variable] = {}
    last = [place[recording.labels(f"features/{layer}")[-1]] for layer in layers]
    for name, table in tables.items():
        found |= table.labelled(name)
        found |= final(
            metrics[name], table.values[:, last, range(len(layers))], table.reasons[:, last, range(len(layers))]
        )
    return found


def feature_rows(recording: Recording, layer: str) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Label, repeat and features (eval_set, sample, unit), snapshot after snapshot."""
    key = f"features/{layer}/features"
    _, repeats, *inner = recording.shape(key)
    blocks = repeat_blocks(repeats, 8 * int(np.prod(inner)))
    for position, label in enumerate(recording.labels(f"features/{layer}")):
        for block in blocks:
            for r, features in zip(range(block.start, block.stop), recording.row(key, position, block), strict=True):
                yield label, r, features


def _of_weights(
    recording: Recording, place: dict[int, int], metrics: dict[str, Metric], settings: dict[str, Any]
) -> dict[str, xr.Variable]:
    repeats = len(recording.seeds)
    whole = {name: Table(_REPEAT_SNAPSHOT, (repeats, len(place))) for name in metrics}
    if not recording.labels("weights"):
        found: dict[str, xr.Variable] = {}
        for name, table in whole.items():
            nothing = np.full((repeats, 1), NOT_RECORDED, np.uint8)
            found |= table.labelled(name) | final(metrics[name], np.full((repeats, 1), np.nan), nothing)
        return found
    tensors = tensors_of(recording, settings["buffers"])
    parts = {name: Table((*_REPEAT_SNAPSHOT, "parameter"), (repeats, len(place), len(tensors))) for name in metrics}
    has_whole = dict.fromkeys(metrics, False)
    for label, r, parameters in _parameters(recording, tensors):
        for name, metric in metrics.items():
            measured: Measured = metric.compute(parameters)
            if measured.whole is not None:
                whole[name].put((r, place[label]), measured.whole)
                has_whole[name] = True
            for i, result in enumerate(measured.tensors.values()):
                parts[name].put((r, place[label], i), result)
    found, last = {}, place[recording.labels("weights")[-1]]
    for name, metric in metrics.items():
        if has_whole[name]:
            found |= whole[name].labelled(name) | parts[name].labelled(name + BY_PARAMETER, metric.attributes)
            found |= final(metric, whole[name].values[:, [last]], whole[name].reasons[:, [last]])
        else:  # of matrices alone: vectors are left out of the mean
            values, reasons = parts[name].values[:, last], parts[name].reasons[:, last]
            matrices = [i for i, tensor in enumerate(tensors) if len(tensor.shape) > 1]
            found |= parts[name].labelled(name) | final(metric, values[:, matrices], reasons[:, matrices])
    return found


def _parameters(recording: Recording, tensors: tuple[Tensor, ...]) -> Iterator[tuple[int, int, Parameters]]:
    """Label, repeat and parameters, snapshot after snapshot. Beside the present ones two more are in memory."""
    key, labels = "weights/weights", recording.labels("weights")
    where = recording.coordinates(labels)
    references = task_references([str(task) for task in where["train_task"][1]])
    untrained = labels and float(where["total_epoch"][1][0]) == 0.0
    _, repeats, count = recording.shape(key)
    for block in repeat_blocks(repeats, 3 * 8 * count):
        initial = recording.whole("weights/initial")[block] if "weights/initial" in recording else None
        if initial is None and untrained:  # the snapshot of step 0 is what the network was before any training
            initial = recording.row(key, 0, block)
        start, before = initial, initial
        for position, label in enumerate(labels):
            now = recording.row(key, position, block)
            if position and references[position] == position - 1 != references[position - 1]:
                start = before
            for i, r in enumerate(range(block.start, block.stop)):
                own = (None if initial is None else initial[i], None if start is None else start[i])
                yield label, r, Parameters(now[i], *own, tensors)
            before = now


def _of_steps(
    repeats: int, series: dict[str, Series | None], place: dict[int, int], metrics: dict[str, Metric]
) -> dict[str, xr.Variable]:
    found: dict[str, xr.Variable] = {}
    for name, one in series.items():
        table = Table(_REPEAT_SNAPSHOT, (repeats, len(place)))
        last = np.full((repeats, 1), np.nan), np.full((repeats, 1), NOT_RECORDED, np.uint8)
        if one is not None:
            for label, values, reasons in zip(one.labels, one.values, one.reasons, strict=True):
                if label in place:
                    table.values[:, place[label]], table.reasons[:, place[label]] = values, reasons
            last = one.values[-1:].T, one.reasons[-1:].T
        found |= table.labelled(name) | final(metrics[name], *last)
    return found


def final(metric: Metric, values: NDArray[np.float64], reasons: NDArray[np.uint8]) -> dict[str, xr.Variable]:
    """`<name>_final` (repeat): the mean of the last values (repeat, layer or other); missing where one of them is."""
    repeats, count = values.shape
    means = values.mean(axis=1) if count else np.full(repeats, np.nan)
    codes = reasons.max(axis=1) if count else np.full(repeats, UNDEFINED, np.uint8)
    codes = np.where(np.isnan(means), codes, 0).astype(np.uint8)
    return variable(metric.scalar, ["repeat"], means, codes)
