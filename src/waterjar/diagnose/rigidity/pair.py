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
    other: Side | None
    """The cell that is the baseline, over its own seeds."""
    settings: Any
    """Those of the family."""

    @worked_out
    def baseline(self) -> Side | None:
        """The baseline seed by seed."""
        return None if self.other is None else for_seeds(self.other, self.learner.seeds)

    @property
    def budget(self) -> float:
        """The smaller of the two budgets: `ad_restricted` is cut there, and nothing else."""
        return self.learner.budget if self.baseline is None else min(self.learner.budget, self.baseline.budget)

    @worked_out
    def checkpoints(self) -> tuple[tuple[NDArray[np.int64], Codes], ...]:
        """(repeat,) each: row of the checkpoint, -1 for none, and why; of the learner, and by the same rule of its
        baseline, if it has one.
        """
        sides = [self.learner] if self.baseline is None else [self.learner, self.baseline]
        return tuple(checkpoint_rows(side, self.settings.checkpoint) for side in sides)

    def final(self, role: str, *, of_baseline: bool = False) -> Result:
        """(repeat,): the accuracy at the checkpoint, of the learner or of its baseline; `no_baseline` without one."""
        side = self.baseline if of_baseline else self.learner
        if side is None:
            return Result.of(np.full(self.learner.seeds.size, np.nan), NO_BASELINE, note="there is no baseline")
        rows, codes = self.checkpoints[of_baseline]
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
