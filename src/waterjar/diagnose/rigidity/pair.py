"""A cell beside its baseline, seed by seed: what every metric of the family is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.labelled import NOT_A_NUMBER
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.curves import Codes
from waterjar.diagnose.rigidity.side import Side, checkpoint_rows, for_seeds
from waterjar.run.schema import REASONS

THRESHOLDS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80)


@dataclass(frozen=True)
class Rules:
    """How the index is taken."""

    threshold: float = 0.6
    window: int = 3
    checkpoint: str = "best"
    thresholds: tuple[float, ...] = THRESHOLDS
    confidence: float = 0.95
    weights: tuple[float, float, float] | None = None
    """Of the composite; None where it was not asked for."""
    rng_seed: int = 0
    """Of the bootstrap."""
    margin: float = 0.05
    """Of `benign_transfer`."""
    power: float = 0.8
    """Of the number of seeds that would settle it."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A learner and its baseline, both over the learner's seeds."""

    learner: Side
    baseline: Side | None
    rules: Rules
    budget: float
    """The smaller of the two budgets: checkpoints are taken within it on both sides."""
    learner_rows: NDArray[np.int64]
    """(repeat,): row of the checkpoint, -1 for none."""
    learner_codes: Codes
    baseline_rows: NDArray[np.int64]
    baseline_codes: Codes

    def final(self, role: str) -> list[Result]:
        """Per seed, the learner's accuracy at its checkpoint."""
        return _at(self.learner, role, self.learner_rows, self.learner_codes)

    def baseline_final(self, role: str) -> list[Result]:
        """Per seed, the baseline's; missing as `not_recorded` where there is no baseline."""
        if self.baseline is None:
            return [Result.missing("not_recorded", "there is no baseline")] * self.learner.seeds.size
        return _at(self.baseline, role, self.baseline_rows, self.baseline_codes)


def make_pair(learner: Side, baseline: Side | None, rules: Rules) -> Pair:
    """Align a cell and its baseline by seed, and find the checkpoints of both by one rule."""
    other = None if baseline is None else for_seeds(baseline, learner.seeds)
    budget = learner.budget if other is None else min(learner.budget, other.budget)
    theirs = learner if other is None else other
    return Pair(
        learner,
        other,
        rules,
        budget,
        *checkpoint_rows(learner, rules.checkpoint, budget),
        *checkpoint_rows(theirs, rules.checkpoint, budget),
    )


def _at(side: Side, role: str, rows: NDArray[np.int64], codes: Codes) -> list[Result]:
    found = []
    for repeat, (row, code) in enumerate(zip(rows, codes, strict=True)):
        if code:
            found.append(Result.missing(REASONS[code], f"{side.name}: no checkpoint"))
            continue
        value, why = float(side.values[role][repeat, row]), int(side.reasons[role][repeat, row])
        if np.isnan(value):
            found.append(Result.missing(REASONS[why or NOT_A_NUMBER], f"{side.name}: {role}"))
        else:
            found.append(Result(value))
    return found
