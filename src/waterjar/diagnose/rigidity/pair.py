"""A cell beside its baseline, seed by seed: what every metric of the family is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.result import NO_BASELINE, NOT_A_NUMBER, Codes, Result
from waterjar.diagnose.rigidity.curves import Crossing, first_epoch_at, trailing_mean
from waterjar.diagnose.rigidity.side import Side, checkpoint_rows, for_seeds


@dataclass(frozen=True, eq=False)
class Pair:
    """A learner and its baseline, both over the learner's seeds."""

    learner: Side
    baseline: Side | None
    settings: Any
    """Those of the family."""
    budget: float
    """The smaller of the two budgets: `ad_restricted` is cut there, and nothing else."""
    learner_rows: NDArray[np.int64]
    """(repeat,): row of the checkpoint, -1 for none."""
    learner_codes: Codes
    baseline_rows: NDArray[np.int64]
    baseline_codes: Codes

    def final(self, role: str, *, of_baseline: bool = False) -> Result:
        """(repeat,): the accuracy at the checkpoint, of the learner or of its baseline; `no_baseline` without one."""
        side, rows, codes = self.learner, self.learner_rows, self.learner_codes
        if of_baseline:
            if self.baseline is None:
                return Result.of(np.full(self.learner.seeds.size, np.nan), NO_BASELINE, note="there is no baseline")
            side, rows, codes = self.baseline, self.baseline_rows, self.baseline_codes
        here = np.arange(len(rows)), np.maximum(rows, 0)
        values, why = np.where(codes > 0, np.nan, side.values[role][here]), side.reasons[role][here]
        return Result.of(values, np.where(codes > 0, codes, np.where(why > 0, why, NOT_A_NUMBER)))

    def crossings(self, thresholds: ArrayLike) -> tuple[Crossing, Crossing]:
        """E of learner and baseline at every threshold, (repeat, threshold); `no_baseline` where there is none."""
        levels, window = np.atleast_1d(np.asarray(thresholds, np.float64)), self.settings.window
        own = epochs_at(self.learner, levels, window)
        if self.baseline is None:
            nothing = np.full(own.epoch.shape, np.nan), np.full(own.epoch.shape, NO_BASELINE, np.uint8)
            return own, Crossing(*nothing)
        return own, epochs_at(self.baseline, levels, window)

    @property
    def budgets(self) -> tuple[float, float] | None:
        """How many effective epochs learner and baseline were trained, as recorded, where that is not the same.

        A side whose last task has not begun has no budget to differ in.
        """
        if self.baseline is None:
            return None
        both = self.learner.budget, self.baseline.budget
        differ = all(map(math.isfinite, both)) and not math.isclose(*both, rel_tol=1e-9)
        return both if differ else None

    @worked_out
    def at_threshold(self) -> tuple[Crossing, Crossing]:
        """E of learner and baseline at the threshold of the settings, (repeat,) each."""
        own, other = self.crossings(self.settings.threshold)
        return Crossing(own.epoch[:, 0], own.reason[:, 0]), Crossing(other.epoch[:, 0], other.reason[:, 0])


def epochs_at(side: Side, levels: NDArray[np.float64], window: int) -> Crossing:
    """E of every seed of a side at every threshold, (repeat, threshold)."""
    smoothed = trailing_mean(side.values["normal"], window)[:, None, :]
    return first_epoch_at(smoothed, levels, epochs=side.epochs, reasons=side.reasons["normal"][:, None, :])


def make_pair(learner: Side, baseline: Side | None, settings: Any) -> Pair:
    """Align a cell and its baseline by seed, and find the checkpoints of both by one rule."""
    other = None if baseline is None else for_seeds(baseline, learner.seeds)
    budget = learner.budget if other is None else min(learner.budget, other.budget)
    theirs = learner if other is None else other
    return Pair(
        learner,
        other,
        settings,
        budget,
        *checkpoint_rows(learner, settings.checkpoint),
        *checkpoint_rows(theirs, settings.checkpoint),
    )
