"""Plasticity over the snapshots of a run: features layer by layer, weights tensor by tensor, each read once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.plasticity.parameters import Parameters
from waterjar.diagnose.plasticity.step_series import StepSeries
from waterjar.diagnose.registry import Metric, find_family
from waterjar.diagnose.representation import Representation
from waterjar.diagnose.result import NOT_RECORDED
from waterjar.diagnose.snapshots import RunArrays, final, repeat_blocks, visit_references
from waterjar.diagnose.tensors import tensors_of

Placed = Iterator[tuple[Any, tuple[Any, ...]]]


class LoadedRun(Loaded):
    """The snapshots of one run, one of them in memory at a time."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        (run,) = unit.runs
        self.arrays, self.chosen_sets = RunArrays(run), settings.eval_sets
        self.weight_labels = self.arrays.labels("weights")
        self.tensors = tensors_of(self.arrays, settings.buffers) if self.weight_labels else ()
        self.layers = {layer: self.arrays.labels(f"features/{layer}") for layer in self.arrays.layers}
        needs = {need for metric in find_family("plasticity").metrics.values() for need in metric.needs}
        probed = self.arrays.probe_steps({need for need in needs if need.startswith("probes/")})
        snapshots = sorted({*self.weight_labels, *probed}.union(*self.layers.values()))
        self.place = {label: i for i, label in enumerate(snapshots)}
        names = np.array([tensor.name for tensor in self.tensors], object)
        axes = {
            "snapshot": snapshots,
            **self.arrays.coordinates(snapshots),
            "layer": np.array(list(self.layers), object),
            "parameter": ("parameter", names, {"long_name": "name of the weight tensor"}),
        }
        super().__init__(unit, axes)

    def inputs(self, wanted: Collection[type]) -> Placed:
        """Features by layer, snapshot and repeat, then parameters by snapshot and repeat, then what has steps alone."""
        if Representation in wanted:
            for k, layer in enumerate(self.layers):
                yield from self._features(k, layer)
        if Parameters in wanted and self.weight_labels:
            yield from self._parameters()
        if StepSeries in wanted:
            yield StepSeries(self.arrays, list(self.place)), ()

    def _features(self, k: int, layer: str) -> Placed:
        """The samples of the chosen eval sets, stacked."""
        key = f"features/{layer}/features"
        sets = self.arrays.eval_sets(f"features/{layer}", self.chosen_sets)
        _, repeats, *inner = self.arrays.shape(key)
        blocks = repeat_blocks(repeats, 8 * int(np.prod(inner)))
        for position, label in enumerate(self.layers[layer]):
            for block in blocks:
                rows = self.arrays.row(key, position, block)
                for r, features in zip(range(block.start, block.stop), rows, strict=True):
                    stacked = features[sets].reshape(-1, features.shape[-1])
                    yield Representation.of(stacked), (r, self.place[label], k)

    def _parameters(self) -> Placed:
        """Snapshot after snapshot. Beside the present parameters two more of each repeat are in memory."""
        key, labels, arrays = "weights/weights", self.weight_labels, self.arrays
        where = arrays.coordinates(labels)
        references = visit_references(where["visit"][1])
        untrained = float(where["total_epoch"][1][0]) == 0.0
        _, repeats, count = arrays.shape(key)
        for block in repeat_blocks(repeats, 3 * 8 * count):
            initial = arrays.whole("weights/initial")[block] if "weights/initial" in arrays else None
            if initial is None and untrained:  # the snapshot of step 0 is what the network was before any training
                initial = arrays.row(key, 0, block)
            start, before = initial, initial
            for position, label in enumerate(labels):
                now = arrays.row(key, position, block)
                if position and references[position] == position - 1 != references[position - 1]:
                    start = before
                for i, r in enumerate(range(block.start, block.stop)):
                    own = (None if initial is None else initial[i], None if start is None else start[i])
                    yield Parameters(now[i], *own, self.tensors), (r, self.place[label])
                before = now

    def summary(self, metric: Metric, table: Table) -> Variables:
        """The last value: the mean over layers, or over the weight tensors that are matrices; vectors have no rank."""
        if not metric.summary or metric.summary in metric.beside:
            return {}
        values, reasons = table.values, table.reasons
        there = self.layers if metric.input is Representation else self.weight_labels
        if not there:
            shape = (len(values), 1)
            return final(metric, np.full(shape, np.nan), np.full(shape, NOT_RECORDED, np.uint8))
        if metric.input is Representation:
            last = [self.place[labels[-1]] for labels in self.layers.values()]
            return final(metric, values[:, last, range(len(last))], reasons[:, last, range(len(last))])
        at = self.place[self.weight_labels[-1]]
        if metric.dims:
            matrices = [i for i, tensor in enumerate(self.tensors) if len(tensor.shape) > 1]
            return final(metric, values[:, at][:, matrices], reasons[:, at][:, matrices])
        return final(metric, values[:, [at]], reasons[:, [at]])
