"""What is read of a run: its snapshots as pieces of work, and how a metric over them becomes one number."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.snapshot import geometry_of_snapshot, samples, unpack
from waterjar.diagnose.labelled import variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import UNDEFINED
from waterjar.diagnose.settings import dump
from waterjar.diagnose.snapshots import RunArrays, final
from waterjar.errors import WaterjarError, unknown_name


class RunSnapshots(Loaded):
    """The snapshots of one run, each layer at each of them a piece of work."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        (run,) = unit.runs
        arrays, plain = RunArrays(run), dump(settings)
        if "probe_samples/label" not in arrays:
            raise WaterjarError(f"{run.path}: labels of the probe samples were not recorded (probe_samples/label)")
        for name in settings.layers or ():
            if name not in arrays.layers:
                raise unknown_name(f"{run.path}: layers", name, arrays.layers)
        self.settings = settings
        self.layers = arrays.layers if settings.layers is None else list(settings.layers)
        recorded = {layer: arrays.labels(f"features/{layer}") for layer in self.layers}
        self.snapshots = sorted({label for labels in recorded.values() for label in labels})
        self.last = [self.snapshots.index(labels[-1]) for labels in recorded.values()]
        where = arrays.coordinates(self.snapshots)
        simulated = _simulated_at(where["total_epoch"][1], settings.simulate_every)
        about = {
            label: (label, bool(simulate), int(task))
            for label, simulate, task in zip(self.snapshots, simulated, where["train_task_index"][1], strict=True)
        }
        digest = f"{run.root_digest} {'' if run.annotations is None else run.annotations.digest}"
        self.pieces = {
            f"{layer}/{label}": (str(run.path), digest, layer, position, *about[label], plain)
            for layer, labels in recorded.items()
            for position, label in enumerate(labels)
        }
        self.manifolds = tuple(
            sorted({str(name) for layer in self.layers for name in np.unique(samples(arrays, layer, plain)[1])})
        )
        labels = {"layer": np.array(self.layers, object), "manifold": np.array(self.manifolds, object)}
        super().__init__(unit, {"snapshot": self.snapshots, **where, **labels})

    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The geometry of every repeat, piece by piece: what is in memory does not grow with their number."""
        for name, piece in self.unit.pieces.run(geometry_of_snapshot, self.pieces):
            layer, _, label = name.rpartition("/")
            place = self.snapshots.index(int(label)), self.layers.index(layer)
            for repeat, geometry in enumerate(unpack(piece, self.manifolds, self.settings)):
                yield geometry, (repeat, *place)

    def summary(self, metric: Metric, table: Table) -> Variables:
        """The mean over layers, each at its last snapshot; and standard errors also of a run that has none."""
        found: Variables = {}
        if metric.summary:
            end = (slice(None), self.last, range(len(self.layers)))
            shape = (len(self.unit.seeds), -1)
            found |= final(metric, table.values[end].reshape(shape), table.reasons[end].reshape(shape))
        if metric.name in SCALARS and table.errors is None:
            nothing = np.full(table.values.shape, np.nan)
            found |= variable(
                f"{metric.name}_se", table.dims, nothing, np.where(table.reasons, table.reasons, UNDEFINED)
            )
        return found


def _simulated_at(epochs: NDArray[np.float64], every: float | None) -> NDArray[np.bool_]:
    """At multiples of `every`, and at the last snapshot."""
    if every is None:
        return np.zeros(len(epochs), bool)
    turns = epochs / every
    found = np.abs(turns - np.round(turns)) < 1e-9
    found[-1:] = True
    return found
