"""Reading a run snapshot by snapshot: what is in memory does not grow with their number."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import NOT_A_NUMBER, UNDEFINED, Codes, Floats, Result
from waterjar.errors import unknown_name
from waterjar.run.reader import Run
from waterjar.run.schema import STEP_COORDINATES
from waterjar.run.visits import VISIT, visits_by_step

Array = NDArray[Any]

PROBE_STEP, PROBE_REASON = "_step", "_why"
"""What runs of schema 1 have beside the numbers of a probe: the step of each, and why it is missing."""


class RunArrays:
    """The arrays of a run, as of its opening, by key: whole, or one snapshot of some repeats."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.path = run.path
        self.seeds = run.seeds
        self.nodes = run.nodes

    def __contains__(self, key: str) -> bool:
        return key in self.nodes

    def shape(self, key: str) -> tuple[int, ...]:
        """Of an array."""
        return tuple(self.nodes[key]["shape"])

    def whole(self, key: str) -> Array:
        """All of an array, for small ones."""
        return self.run.array(key)

    @property
    def layers(self) -> list[str]:
        """Layers with features, by name, numbers in it by their size (a run does not keep the order of recording)."""
        parts = [key.split("/") for key in self.nodes if self.nodes[key]["node_type"] == "array"]
        layers = [p[1] for p in parts if len(p) == 3 and p[0] == p[2] == "features"]
        layers = [layer for layer in layers if self.shape(f"features/{layer}/features")[0]]
        return sorted(
            layers, key=lambda name: [(len(x), x) if x.isdigit() else (0, x) for x in re.split(r"(\d+)", name)]
        )

    def labels(self, group: str) -> list[int]:
        """The labels of a group's snapshots; none if the group was not recorded."""
        key = f"{group}/snapshot"
        return [int(label) for label in self.whole(key)] if key in self else []

    def probe_steps(self, probes: Collection[str]) -> set[int]:
        """Steps at which any of some probes (`probes/<name>`) was taken."""
        own = {key for probe in probes for key in (probe + PROBE_STEP, f"{probe}/step")}
        return {int(step) for key in own if key in self for step in np.atleast_2d(self.whole(key))[0]}

    @cached_property
    def visits(self) -> dict[int, tuple[int, int]]:
        """Step -> its visit, and the task that is trained in it, of all steps."""
        return visits_by_step(self.run)

    def row(self, key: str, position: int, repeats: slice) -> Array:
        """One snapshot (repeat, ...) of some repeats; only the chunks that hold it are read."""
        return self.run.row(key, position, repeats)

    def eval_sets(self, group: str, wanted: Sequence[str] | None) -> list[int]:
        """Positions of the eval sets asked for; all of them by default."""
        names = [str(name) for name in self.whole(f"{group}/eval_set")]
        for name in wanted or ():
            if name not in names:
                raise unknown_name(f"{self.path}: eval_sets", name, names)
        return [names.index(name) for name in (names if wanted is None else wanted)]

    def coordinates(self, labels: Sequence[int]) -> dict[str, tuple[str, Array, dict[str, str]]]:
        """Where snapshots stand: task, visit, epochs, and whether a snapshot is the last one of a visit of its task.

        Schema 1 did not record visits: they follow from the tasks of all steps, also of those without a snapshot.
        """
        known: dict[int, dict[str, Any]] = {}
        for group in {key.rpartition("/")[0]: None for key in self.nodes}:
            dim = next((d for d in ("snapshot", "step") if f"{group}/{d}" in self), None)
            columns = [name for name in STEP_COORDINATES if f"{group}/{name}" in self]
            if dim is not None and columns and not all(label in known for label in labels):
                for label, *row in zip(*(self.whole(f"{group}/{name}") for name in (dim, *columns)), strict=True):
                    known.setdefault(int(label), dict(zip(columns, row, strict=True)))
        if not all(VISIT in known[label] for label in labels):
            for label in labels:
                known[label][VISIT] = self.visits[label][0] if label in self.visits else known[label].get(VISIT, -1)
        found: dict[str, tuple[str, Array, dict[str, str]]] = {}
        for name, long_name in STEP_COORDINATES.items():
            values = [known[label][name] for label in labels]
            array = np.asarray(values, dtype=object if name == "train_task" else None)
            found[name] = ("snapshot", array, {"long_name": long_name})
        visits = found[VISIT][1].tolist()
        last = np.array([visits[i : i + 2] != [visit, visit] for i, visit in enumerate(visits)], bool)
        found["task_end"] = ("snapshot", last, {"long_name": "whether it is the last snapshot of its task"})
        return found


def visit_references(visits: Sequence[int] | Array) -> list[int]:
    """Position of the last snapshot of the visit before, which is that of the task before; -1 during the first one.

    >>> visit_references([0, 0, 1, 1, 2])
    [-1, -1, 1, 1, 3]
    """
    found: list[int] = []
    for i, visit in enumerate(visits):
        changed = i > 0 and visit != visits[i - 1]
        found.append(i - 1 if changed else found[-1] if found else -1)
    return found


def repeat_blocks(repeats: int, bytes_each: int, budget: int = 2**28) -> list[slice]:
    """Repeats to hold in memory together.

    >>> repeat_blocks(5, 2**27)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, bytes_each))
    return [slice(start, min(start + size, repeats)) for start in range(0, repeats, size)]


def mean_of_last(values: Floats, reasons: Codes) -> Result:
    """(repeat): the mean of the last values (repeat, layer or other); missing where one of them is."""
    repeats, count = values.shape
    if not count:
        return Result.of(np.full(repeats, np.nan), UNDEFINED)
    codes = reasons.max(axis=1)
    return Result.of(values.mean(axis=1), np.where(codes == 0, NOT_A_NUMBER, codes))


def final(metric: Metric, values: Floats, reasons: Codes) -> dict[str, xr.Variable]:
    """`<name>_final` (repeat), see `mean_of_last`."""
    last = mean_of_last(values, reasons)
    return variable(metric.scalar, ["repeat"], last.value, last.reason)
