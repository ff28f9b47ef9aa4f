"""What metrics of drift read: a snapshot of a layer, two of them, curves over all of them, and those of other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.drift.classes import Classes
from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.linear_probe import linear_probe_accuracy
from waterjar.diagnose.result import Result

NO_LABELS = Result.missing("not_recorded", "the labels of the samples were not recorded (probe_samples)")
NO_READOUT = Result.missing("not_recorded", "the weights of the readout of this layer were not recorded")
_NO_SET = Result.missing("not_recorded", "the run has no such eval set")
_NO_REFERENCE = Result.missing("undefined", "there is no snapshot before the first")


@dataclass(frozen=True)
class Readout:
    """The last linear map of a network: weights (class, unit) and bias (class)."""

    weights: NDArray[Any]
    bias: NDArray[Any]


@dataclass(frozen=True)
class LayerSnapshot:
    """One snapshot of one repeat, at one layer. What several metrics need of it is computed when first asked for."""

    cloud: Cloud
    labels: NDArray[np.int64] | None
    """(sample), of the stacked samples."""
    readout: Readout | Result
    """Or why there is none."""
    eval_sets: Mapping[str, slice | None]
    """Which of the stacked samples belong to which eval set; None for sets that only other runs of the cell have."""
    ridge: float
    """Penalty of the linear probe."""

    @worked_out
    def classes(self) -> Classes | None:
        """Means by class; None where labels were not recorded."""
        return None if self.labels is None else Classes.of(self.cloud, self.labels)

    @worked_out
    def probe_accuracy(self) -> Result:
        """Accuracy of a fresh linear probe (eval_set)."""
        return Result.stack([self._probe(rows) for rows in self.eval_sets.values()])

    def _probe(self, rows: slice | None) -> Result:
        if rows is None or self.labels is None:
            return NO_LABELS if rows is not None else _NO_SET
        return linear_probe_accuracy(self.cloud.features[rows], self.labels[rows], ridge=self.ridge)


@dataclass(frozen=True)
class Comparison:
    """Two representations of the same samples, at the same layer of the same repeat."""

    now: Cloud
    other: Cloud


_NOTHING = Cloud(np.empty((0, 0)), _NO_REFERENCE)
NO_COMPARISON = Comparison(_NOTHING, _NOTHING)
"""Of the first snapshot with the one before: a comparison of clouds that are missing is missing for their reason."""


@dataclass(frozen=True)
class Curves:
    """Over the snapshots of one repeat, at one layer: how well old tasks can be told, and are told."""

    probe: Result
    """(snapshot, eval_set): accuracy of a fresh linear probe."""
    network: Result
    """(snapshot, eval_set): accuracy of the network itself."""
    eval_task: Sequence[int | None]
    """(eval_set): position of its task, -1 for none; None for sets that only other runs of the cell have."""
    train_task: NDArray[np.int64]
    """(snapshot): position of the task in training, -1 for joint."""
    visit: NDArray[np.int64]
    """(snapshot): the visit of that task that it belongs to."""
    visited: Mapping[int, int]
    """Visit -> the task that was trained in it, also of visits without a snapshot."""


@dataclass(frozen=True)
class Siblings:
    """The last snapshots of the seeds of one cell, at one layer; None where a seed has none of the same samples."""

    clouds: list[Cloud | None]
