"""Drift over the snapshots of a run: each snapshot is read once a repeat, and compared with those it refers to."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.moment import Curves, Moment, Siblings
from waterjar.diagnose.drift.readouts import Readouts
from waterjar.diagnose.labelled import NOT_RECORDED, UNDEFINED
from waterjar.diagnose.plasticity.measuring import Table, final
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.snapshots import Recording, repeat_blocks, settings_for, task_references

REFERENCES = ("first", "task", "previous")
"""What a snapshot is compared with: the first one, the last one of the task before (the first one during the first
task), and the one before."""

MATRIX = "_matrix"
_NO_REFERENCE = Result.missing("undefined", "there is no snapshot before the first")


def kind_of(metric: Metric) -> Any:
    """What a metric is a function of: the type of its first argument, Moment, Cloud (and another), Curves, Siblings."""
    hints = typing.get_type_hints(metric.compute)
    return next(iter(hints.values()))


class Measurement:
    """The drift of one run, as it is put together layer by layer."""

    def __init__(self, recording: Recording, metrics: dict[str, Metric], settings: dict[str, Any]) -> None:
        self.recording, self.settings = recording, settings
        self.metrics, self.kinds = metrics, {name: kind_of(metric) for name, metric in metrics.items()}
        self.layers = recording.layers
        self.labels = sorted({n for layer in self.layers for n in recording.labels(f"features/{layer}")})
        self.coordinates = recording.coordinates(self.labels)
        names = [str(name) for name in recording.whole(f"features/{self.layers[0]}/eval_set")]
        chosen = recording.eval_sets(f"features/{self.layers[0]}", settings["eval_sets"])
        self.sets = {names[i]: i for i in chosen}
        self.points = kept_moments(self.labels, self.coordinates["task_end"][1], settings["matrix"])
        self.readouts = Readouts(recording, settings["readout"])
        known = "probe_samples/label" in recording
        self.sample_labels = recording.whole("probe_samples/label") if known else None
        self.tables = {name: self._table(kind) for name, kind in self.kinds.items()}
        shape = (len(recording.seeds), len(self.layers), len(self.points), len(self.points))
        dims = ("repeat", "layer", "moment", "other_moment")
        self.matrices = {name: Table(dims, shape) for name in self._of_kind(Cloud)} if self.points else {}

    def _of_kind(self, kind: Any) -> dict[str, Metric]:
        return {name: metric for name, metric in self.metrics.items() if self.kinds[name] is kind}

    def _table(self, kind: Any) -> Table:
        dims, shape = ("repeat", "snapshot", "layer"), (len(self.recording.seeds), len(self.labels), len(self.layers))
        if kind is Cloud:
            return Table((*dims, "reference"), (*shape, len(REFERENCES)))
        if kind is Siblings:
            return Table(("repeat", "layer"), (shape[0], shape[2]))
        return Table(dims, shape)  # metrics per eval set get that dimension with their first value

    def run(self) -> None:
        """Read everything."""
        for k, layer in enumerate(self.layers):
            key = f"features/{layer}/features"
            labels = self.recording.labels(f"features/{layer}")
            _, repeats, _, samples, units = self.recording.shape(key)
            samples *= len(self.sets)
            held = 2 * 8 * samples * units * (len(self.points) + 4)
            for block in repeat_blocks(repeats, held):
                self._of_block(k, layer, labels, block)

    def _of_block(self, k: int, layer: str, labels: list[int], block: slice) -> None:
        where = [self.labels.index(label) for label in labels]
        tasks = [str(self.coordinates["train_task"][1][i]) for i in where]
        starts = task_references(tasks)
        seen: dict[int, dict[str, Cloud]] = {r: {} for r in range(block.start, block.stop)}
        kept: dict[int, dict[int, Cloud]] = {r: {} for r in seen}
        for position, label in enumerate(labels):
            rows = self.recording.row(f"features/{layer}/features", position, block)
            for r, features in zip(seen, rows, strict=True):
                moment = self._moment(layer, label, r, features)
                before = seen[r]
                before.setdefault("first", moment.cloud)
                if position and starts[position] == position - 1 != starts[position - 1]:
                    before["task"] = before["previous"]
                before.setdefault("task", moment.cloud)
                self._put(r, where[position], k, moment, before)
                if label in self.points:
                    kept[r][self.points.index(label)] = moment.cloud
                before["previous"] = moment.cloud
        for r, found in kept.items():
            self._put_matrix(r, k, found)

    def _moment(self, layer: str, label: int, r: int, features: NDArray[Any]) -> Moment:
        samples = features.shape[1]
        rows = {name: slice(i * samples, (i + 1) * samples) for i, name in enumerate(self.sets)}
        labels = None
        if self.sample_labels is not None:
            labels = np.concatenate([self.sample_labels[r, i] for i in self.sets.values()]).astype(np.int64)
        return Moment(self._cloud(features), labels, self.readouts.of(layer, label, r), rows)

    def _cloud(self, features: NDArray[Any]) -> Cloud:
        """The samples of all eval sets, stacked."""
        return Cloud.of(np.concatenate([features[i] for i in self.sets.values()]))

    def last_cloud(self, layer: str, repeat: int) -> Cloud:
        """The last snapshot of a layer, read again: those of all seeds and layers would be too much to keep."""
        position = len(self.recording.labels(f"features/{layer}")) - 1
        row = self.recording.row(f"features/{layer}/features", position, slice(repeat, repeat + 1))
        return self._cloud(row[0])

    def _put(self, r: int, s: int, k: int, moment: Moment, before: dict[str, Cloud]) -> None:
        for name, metric in self.metrics.items():
            if self.kinds[name] is Cloud:
                for i, reference in enumerate(REFERENCES):
                    other = before.get(reference)
                    result = _NO_REFERENCE if other is None else metric.compute(moment.cloud, other)
                    self.tables[name].put((r, s, k, i), result)
            elif self.kinds[name] is Moment:
                result = metric.compute(moment, **settings_for(metric, self.settings))
                if isinstance(result, dict):
                    self._put_by_set(name, (r, s, k), result)
                else:
                    self.tables[name].put((r, s, k), result)

    def _put_by_set(self, name: str, place: tuple[int, ...], results: dict[str, Result]) -> None:
        for i, result in enumerate(results.values()):
            self._by_set(name).put((*place, i), result)

    def _by_set(self, name: str) -> Table:
        table = self.tables[name]
        if table.dims[-1] != "eval_set":
            shape = (*table.values.shape, len(self.sets))
            table = self.tables[name] = Table((*table.dims, "eval_set"), shape)
        return table

    def _put_matrix(self, r: int, k: int, clouds: dict[int, Cloud]) -> None:
        for name, table in self.matrices.items():
            for i, one in clouds.items():
                for j, two in clouds.items():
                    if i <= j:
                        result = self.metrics[name].compute(one, two)
                        table.put((r, k, i, j), result)
                        table.put((r, k, j, i), result)

    def put_curves(self) -> None:
        """What follows from curves over all snapshots, once they are all there."""
        told = self._readout_accuracy()
        tasks = dict(zip(self._names("eval_set"), self._names("eval_task"), strict=True))
        training = np.asarray(self.coordinates["train_task_index"][1], np.int64)
        probe = self.tables["probe_accuracy"]
        for name, metric in self._of_kind(Curves).items():
            table = self._by_set(name)
            for r, k in np.ndindex(len(self.recording.seeds), len(self.layers)):
                curves = Curves(
                    {set_: probe.values[r, :, k, i] for i, set_ in enumerate(self.sets)},
                    {set_: told[set_][r] for set_ in self.sets},
                    {set_: int(tasks[set_]) for set_ in self.sets},
                    training,
                )
                for i, values in enumerate(metric.compute(curves).values()):
                    why = why_missing(list(curves.eval_task.values())[i], training, probe.reasons[r, :, k, i])
                    table.values[r, :, k, i] = values
                    table.reasons[r, :, k, i] = np.where(np.isnan(values), why, 0)

    def _names(self, column: str) -> list[Any]:
        return list(self.recording.whole(f"features/{self.layers[0]}/{column}"))

    def _readout_accuracy(self) -> dict[str, NDArray[np.float64]]:
        """eval set -> (repeat, snapshot), NaN where the network's accuracy was not recorded."""
        found = {name: np.full((len(self.recording.seeds), len(self.labels)), np.nan) for name in self.sets}
        if "performance/accuracy" not in self.recording:
            return found
        accuracy = self.recording.whole("performance/accuracy")
        names = [str(name) for name in self.recording.whole("performance/eval_set")]
        for i, label in enumerate(self.recording.whole("performance/step")):
            if int(label) in self.labels:
                for name, values in found.items():
                    if name in names:
                        values[:, self.labels.index(int(label))] = accuracy[i, names.index(name)]
        return found

    def put_siblings(self, k: int, name: str, results: list[Result]) -> None:
        """Of one layer, for the repeats of this run."""
        for r, result in enumerate(results):
            self.tables[name].put((r, k), result)

    def labelled(self) -> xr.Dataset:
        """All of it, and under `<name>_final` one number per repeat."""
        found: dict[str, xr.Variable] = {}
        repeats = len(self.recording.seeds)
        for name, table in self.tables.items():
            values, reasons = table.values, table.reasons
            if "snapshot" in table.dims:
                last = [self.labels.index(self.recording.labels(f"features/{layer}")[-1]) for layer in self.layers]
                values, reasons = (a[:, last, range(len(self.layers))] for a in (values, reasons))
            if "reference" in table.dims:
                values, reasons = (a[..., REFERENCES.index("first")] for a in (values, reasons))
            values, reasons = values.reshape(repeats, -1), reasons.reshape(repeats, -1)
            if "eval_set" in table.dims or "weights/weights" in self.metrics[name].needs:
                # sets of one class cannot be probed, of tasks that are not over not be forgotten; other layers not read
                defined = ~(reasons == UNDEFINED).all(axis=0)
                values, reasons = values[:, defined], reasons[:, defined]
            found |= table.labelled(name) | final(self.metrics[name], values, reasons)
        for name, table in self.matrices.items():
            about = self.metrics[name].attributes
            found |= table.labelled(name + MATRIX, {**about, "long_name": f"{name} between snapshots"})
        coordinates: dict[str, Any] = {"repeat": np.arange(repeats), "seed": ("repeat", self.recording.seeds)}
        coordinates |= {"snapshot": self.labels, **self.coordinates, "layer": np.array(self.layers, object)}
        coordinates |= {"reference": list(REFERENCES), "eval_set": np.array(list(self.sets), object)}
        if self.points:
            coordinates |= {"moment": self.points, "other_moment": self.points}
        return xr.Dataset(found, coordinates)


def kept_moments(labels: Sequence[int], task_ends: ArrayLike, count: int) -> list[int]:
    """Which snapshots are compared with each other: the first, the ends of tasks, and others evenly in between.

    >>> kept_moments(range(10), [False] * 4 + [True] + [False] * 4 + [True], 5)
    [0, 2, 4, 7, 9]
    """
    places = sorted({0, *np.flatnonzero(np.asarray(task_ends)).tolist()})
    rest = [i for i in range(len(labels)) if i not in places]
    if len(places) > count:
        places = [places[int(i)] for i in np.linspace(0, len(places) - 1, count)]
    else:
        more = min(count - len(places), len(rest))
        places = sorted([*places, *(rest[int((i + 0.5) * len(rest) / more)] for i in range(more))])
    return [labels[i] for i in places]


def why_missing(task: int, training: NDArray[np.int64], probe: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Why forgetting is missing, where it is (snapshot): before the own task is over it is not defined.

    >>> why_missing(0, np.array([0, 1, 1]), np.array([0, 2, 0], np.uint8)).tolist()
    [6, 2, 1]
    """
    own = np.flatnonzero(training == task)
    found = np.full(len(training), UNDEFINED, np.uint8)
    if task >= 0 and len(own):
        later = slice(own[-1] + 1, None)
        at_end = probe[own[-1]]
        found[later] = np.where(probe[later] != 0, probe[later], at_end if at_end else NOT_RECORDED)
    return found
