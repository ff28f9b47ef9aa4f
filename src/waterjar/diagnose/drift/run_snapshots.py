"""What one run of a cell has recorded of its representations, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.inputs import LayerSnapshot
from waterjar.diagnose.drift.readouts import Readouts
from waterjar.diagnose.result import NOT_RECORDED, Result
from waterjar.diagnose.snapshots import RunArrays
from waterjar.run.accuracies import check_accuracies
from waterjar.run.reader import Run


class RunSnapshots:
    """Layers, snapshots, eval sets, labels of samples and readouts of one run."""

    def __init__(self, run: Run, settings: Any) -> None:
        self.arrays, self.ridge = RunArrays(run), settings.ridge
        self.layers = {layer: self.arrays.labels(f"features/{layer}") for layer in self.arrays.layers}
        self.labels = sorted(set().union(*self.layers.values()))
        self.steps = self.arrays.coordinates(self.labels)
        self._group = f"features/{next(iter(self.layers))}"
        names = [str(name) for name in self.arrays.whole(f"{self._group}/eval_set")]
        self.sets = {names[i]: i for i in self.arrays.eval_sets(self._group, settings.eval_sets)}
        self.moments = kept_moments(self.labels, self.steps["task_end"][1], settings.matrix)
        self._readouts = Readouts(self.arrays, settings.readout)
        known = "probe_samples/label" in self.arrays
        self._sample_labels = self.arrays.whole("probe_samples/label") if known else None

    @property
    def axes(self) -> xr.Dataset:
        """The labels of everything that a result of this run is over."""
        axes: dict[str, Any] = {"repeat": np.arange(len(self.arrays.seeds)), "snapshot": self.labels, **self.steps}
        axes |= {"layer": np.array(list(self.layers), object), "eval_set": np.array(list(self.sets), object)}
        return xr.Dataset(coords=axes | {"moment": self.moments, "other_moment": self.moments})

    def bytes_held(self, layer: str, count: int) -> int:
        """What that many snapshots of one repeat take, as they are and centred."""
        *_, samples, units = self.arrays.shape(f"features/{layer}/features")
        return 2 * 8 * samples * len(self.sets) * units * count

    def cloud(self, features: NDArray[Any]) -> Cloud:
        """Features (eval_set, sample, unit): the samples of all chosen eval sets, stacked."""
        return Cloud.of(np.concatenate([features[i] for i in self.sets.values()]))

    def last_cloud(self, layer: str, repeat: int) -> Cloud:
        """The last snapshot of a layer, read again: those of all seeds and layers would be too much to keep."""
        key = f"features/{layer}/features"
        return self.cloud(self.arrays.row(key, len(self.layers[layer]) - 1, slice(repeat, repeat + 1))[0])

    def layer_snapshot(
        self, cloud: Cloud, layer: str, label: int, repeat: int, eval_sets: Sequence[str]
    ) -> LayerSnapshot:
        """A cloud with what else is known of it; `eval_sets` are those of all runs of the cell."""
        samples = len(cloud.features) // len(self.sets)
        rows = {name: slice(i * samples, (i + 1) * samples) for i, name in enumerate(self.sets)}
        labels = None
        if self._sample_labels is not None:
            labels = np.concatenate([self._sample_labels[repeat, i] for i in self.sets.values()]).astype(np.int64)
        readout = self._readouts.of(layer, label, repeat)
        return LayerSnapshot(cloud, labels, readout, {name: rows.get(name) for name in eval_sets}, self.ridge)

    def samples_of(self, layer: str, repeat: int) -> tuple[object, ...]:
        """The last snapshot of a layer, and which samples it is of: equal where seeds can be compared."""
        index = "probe_samples/sample_index"
        samples = self.arrays.whole(index)[repeat].tobytes() if index in self.arrays else b""
        count = self.arrays.shape(f"features/{layer}/features")[-2] * len(self.sets)
        return self.layers[layer][-1], count, tuple(self.sets), samples

    def eval_tasks(self, eval_sets: Sequence[str]) -> list[int | None]:
        """The position of each eval set's task; None for sets that this run does not have."""
        names, tasks = (self.arrays.whole(f"{self._group}/{column}") for column in ("eval_set", "eval_task"))
        known = {str(name): int(task) for name, task in zip(names, tasks, strict=True) if str(name) in self.sets}
        return [known.get(name) for name in eval_sets]

    def network_accuracy(self, eval_sets: Sequence[str]) -> Result:
        """(repeat, snapshot, eval_set), missing where the network's accuracy was not recorded."""
        found = np.full((len(self.arrays.seeds), len(self.labels), len(eval_sets)), np.nan)
        if "performance/accuracy" in self.arrays:
            accuracy = self.arrays.whole("performance/accuracy")
            names = [str(name) for name in self.arrays.whole("performance/eval_set")]
            steps = {int(label): i for i, label in enumerate(self.arrays.whole("performance/step"))}
            for s, label in enumerate(self.labels):
                for e, name in enumerate(eval_sets):
                    if label in steps and name in names and name in self.sets:
                        found[:, s, e] = accuracy[steps[label], names.index(name)]
            check_accuracies(found, f"{self.arrays.path}: accuracy of (repeat, snapshot, eval_set)")
        return Result.of(found, NOT_RECORDED)


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
