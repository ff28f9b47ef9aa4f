"""Drift over the snapshots of the runs of a cell: each is read once a repeat, and compared with those it refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.calling import Lock, named, with_settings
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.inputs import NO_COMPARISON, Comparison, Curves, LayerSnapshot, Siblings
from waterjar.diagnose.drift.run_snapshots import RunSnapshots
from waterjar.diagnose.labelled import concatenate, variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.registry import Metric, find_family
from waterjar.diagnose.result import NOT_RECORDED, UNDEFINED, Result
from waterjar.diagnose.snapshots import mean_of_last, repeat_blocks, visit_references

REFERENCES = ("first", "task", "previous")
"""What a snapshot is compared with: the first one, the last one of the task before (the first one during the first
task; where tasks are trained again, of the visit before), and the one before."""

MATRIX = "_matrix"
Placed = Iterator[tuple[Any, tuple[Any, ...]]]


class LoadedCell(Loaded):
    """The snapshots of the runs of one cell. Of each repeat a few are in memory at a time, whatever their number."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        self.settings = settings
        self.runs = [RunSnapshots(run, settings) for run in unit.runs]
        joined = concatenate([run.axes for run in self.runs], "repeat")
        axes = {str(name): one.variable for name, one in joined.coords.items() if name != "repeat"}
        if not settings.matrix:
            del axes["moment"], axes["other_moment"]
        self.places = {
            dim: {label: i for i, label in enumerate(axes[dim].values.tolist())}
            for dim in ("snapshot", "layer", "eval_set", "moment")
            if dim in axes
        }
        super().__init__(unit, {**axes, "reference": list(REFERENCES)})
        ends = np.cumsum([len(run.seeds) for run in unit.runs])
        self.rows = [slice(end - len(run.seeds), end) for end, run in zip(ends.tolist(), unit.runs, strict=True)]
        self.matrices: dict[str, Table] = {}

    def inputs(self, wanted: Collection[type]) -> Placed:
        """Run by run and layer by layer; what is between seeds at the end."""
        one_by_one = {LayerSnapshot, Comparison, Curves}.intersection(wanted)
        for run, rows in zip(self.runs, self.rows, strict=True):
            for layer in run.layers if one_by_one else ():
                yield from self._of_layer(run, rows.start, layer, wanted)
        if Siblings in wanted:
            for layer, k in self.places["layer"].items():
                yield self._siblings(layer, k)

    def _of_layer(self, run: RunSnapshots, start: int, layer: str, wanted: Collection[type]) -> Placed:
        sets = list(self.places["eval_set"])
        shape = (len(run.arrays.seeds), len(run.labels), len(sets))
        probe = np.full(shape, np.nan), np.full(shape, NOT_RECORDED, np.uint8)
        k = self.places["layer"][layer]
        for block in repeat_blocks(shape[0], run.bytes_held(layer, len(run.moments) + 4)):
            for cloud, r, label, others in self._clouds(run, layer, block, start, matrix=Comparison in wanted):
                place = (start + r, self.places["snapshot"][label], k)
                if LayerSnapshot in wanted or Curves in wanted:
                    snapshot = run.layer_snapshot(cloud, layer, label, r, sets)
                    if LayerSnapshot in wanted:
                        yield snapshot, place
                    if Curves in wanted:
                        at = (r, run.labels.index(label))
                        probe[0][at], probe[1][at] = snapshot.probe_accuracy.value, snapshot.probe_accuracy.reason
                if Comparison in wanted:
                    for i, reference in enumerate(REFERENCES):
                        other = others.get(reference)
                        yield NO_COMPARISON if other is None else Comparison(cloud, other), (*place, i)
        if Curves in wanted:
            tasks, network = run.eval_tasks(sets), run.network_accuracy(sets)
            training, visits = (np.asarray(run.steps[key][1], np.int64) for key in ("train_task_index", "visit"))
            visited = dict(run.arrays.visits.values())
            snapshots = np.array([self.places["snapshot"][label] for label in run.labels])
            for r in range(shape[0]):
                own, told = Result.of(probe[0][r], probe[1][r]), Result.of(network.value[r], network.reason[r])
                yield Curves(own, told, tasks, training, visits, visited), (start + r, snapshots, k)

    def _clouds(
        self, run: RunSnapshots, layer: str, block: slice, start: int, *, matrix: bool
    ) -> Iterator[tuple[Cloud, int, int, dict[str, Cloud]]]:
        """Every snapshot of a layer and some repeats, with its repeat, its label and those that it is compared with."""
        labels = run.layers[layer]
        visits = dict(zip(run.labels, run.steps["visit"][1].tolist(), strict=True))
        starts = visit_references([visits[label] for label in labels])
        seen: dict[int, dict[str, Cloud]] = {r: {} for r in range(block.start, block.stop)}
        kept: dict[int, dict[int, Cloud]] = {r: {} for r in seen}
        for position, label in enumerate(labels):
            rows = run.arrays.row(f"features/{layer}/features", position, block)
            for r, features in zip(seen, rows, strict=True):
                cloud, before = run.cloud(features), seen[r]
                before.setdefault("first", cloud)
                if position and starts[position] == position - 1 != starts[position - 1]:
                    before["task"] = before["previous"]
                before.setdefault("task", cloud)
                yield cloud, r, label, before
                if matrix and label in run.moments:
                    kept[r][self.places["moment"][label]] = cloud
                before["previous"] = cloud
        for r, clouds in kept.items():
            self._put_matrix((start + r, self.places["layer"][layer]), clouds)

    def _put_matrix(self, place: tuple[int, int], clouds: dict[int, Cloud]) -> None:
        """Every metric that compares two clouds, of every pair of them once."""
        pairs = [(i, j) for i in clouds for j in clouds if i <= j]
        for metric in find_family("drift").metrics.values() if pairs else ():
            if metric.input is Comparison:
                if metric.name not in self.matrices:
                    self.matrices[metric.name] = Table(("repeat", "layer", "moment", "other_moment"), self.sizes)
                for i, j in pairs:
                    with named(metric):
                        given = Comparison(clouds[i], clouds[j])
                        lock = Lock()
                        lock.close(given)
                        result = with_settings(metric, self.settings)(given)
                        lock.check()
                        self.matrices[metric.name].put((*place, i, j), result)
                        self.matrices[metric.name].put((*place, j, i), result)

    def _siblings(self, layer: str, k: int) -> tuple[Siblings, tuple[Any, ...]]:
        """Of the seeds of runs with that layer; None where it is not of the samples, or the snapshot, of the first."""
        clouds: list[Cloud | None] = []
        places: list[int] = []
        common: tuple[object, ...] | None = None
        for run, rows in zip(self.runs, self.rows, strict=True):
            if layer in run.layers:
                for r in range(rows.stop - rows.start):
                    own = run.samples_of(layer, r)
                    common = common or own
                    clouds.append(run.last_cloud(layer, r) if own == common else None)
                    places.append(rows.start + r)
        return Siblings(clouds), (np.array(places), k)

    def summary(self, metric: Metric, table: Table) -> Variables:
        """`<name>_final`: at each layer's last snapshot, against the first one, the mean over layers and eval sets."""
        if not metric.summary:
            return {}
        parts = [self._last(run, rows, metric, table) for run, rows in zip(self.runs, self.rows, strict=True)]
        values, reasons = (np.concatenate([getattr(part, key) for part in parts]) for key in ("value", "reason"))
        return variable(metric.summary, ["repeat"], values, reasons)

    def _last(self, run: RunSnapshots, rows: slice, metric: Metric, table: Table) -> Result:
        """The last values of the repeats of one run, over its own layers and eval sets."""
        layers = [self.places["layer"][layer] for layer in run.layers]
        last = [self.places["snapshot"][labels[-1]] for labels in run.layers.values()]
        sets = [self.places["eval_set"][name] for name in run.sets]

        def chosen(array: NDArray[Any]) -> NDArray[Any]:
            own = array[rows][:, last, layers] if "snapshot" in table.dims else array[rows][:, layers]
            if "reference" in table.dims:
                own = own[..., REFERENCES.index("first")]
            if "eval_set" in table.dims:
                own = own[..., sets]
            return own.reshape(len(own), -1)

        values, reasons = chosen(table.values), chosen(table.reasons)
        if "eval_set" in table.dims or "weights/weights" in metric.needs:
            # sets of one class cannot be probed, of tasks that are not over not be forgotten; other layers not read
            defined = ~(reasons == UNDEFINED).all(axis=0)
            values, reasons = values[:, defined], reasons[:, defined]
        return mean_of_last(values, reasons)

    def close(self, found: Variables) -> Variables:
        """Comparisons of chosen snapshots with each other."""
        made: Variables = {}
        for name, table in self.matrices.items():
            about = find_family("drift").metrics[name].attributes
            made |= table.labelled(name + MATRIX, {**about, "long_name": f"{name} between snapshots"})
        return made
