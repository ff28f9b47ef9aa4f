"""What metrics of examples read: the history of every example, the last answers of all seeds, and those of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.result import NEVER_REACHED, NOT_A_NUMBER, NOT_RECORDED, UNDEFINED, Codes, Floats, Result
from waterjar.run.schema import ABSENT

Bools = NDArray[np.bool_]
Answers = NDArray[np.uint8]
"""1 right, 0 wrong, ABSENT where nobody looked, or where it does not count."""


@dataclass(frozen=True, eq=False)
class History:
    """One repeat: every example at every evaluation."""

    correct: Answers
    """(evaluation, example), as recorded."""
    margin: NDArray[np.floating[Any]] | None
    """(evaluation, example); None where it was not recorded."""
    counts: Bools
    """(evaluation, example): whether the evaluation counts for the example, by the setting `since`."""
    in_training: Bools
    """(evaluation, example): whether it counts, and the example's own task was in training."""
    epochs: Floats
    """(evaluation, example): epochs of the example's task, NaN where it never began; or of the run."""
    eval_sets: Sequence[str]
    set_of: NDArray[np.int64]
    """(example,): position of its set in `eval_sets`."""
    judged: Bools
    """(example,): whether it is of the sets that the one number per seed is over."""
    ended: int
    """Why nothing is known of the repeat as a whole, as a code: it ended early; else 0."""

    @worked_out
    def answers(self) -> Answers:
        """(evaluation, example): those that count."""
        return np.where(self.counts, self.correct, np.uint8(ABSENT))

    @worked_out
    def reasons(self) -> Codes:
        """(example,): why nothing can be said of an example; 0 where something can.

        Its task was never trained: `undefined`. A margin that is not a number says the same of the answer beside it.
        """
        looked = self.answers != ABSENT
        codes = np.where(looked.any(0), 0, NOT_RECORDED)
        if self.margin is not None:
            codes = np.where((looked & np.isnan(self.margin)).any(0), NOT_A_NUMBER, codes)
        codes = np.where(self.counts.any(0), codes, UNDEFINED)
        return np.where(self.ended, self.ended, codes).astype(np.uint8)

    @worked_out
    def ever_right(self) -> Bools:
        """(example,): whether an answer that counts was right."""
        found: Bools = (self.answers == 1).any(0)
        return found

    def over(self, values: Floats, codes: Codes, how: str = "mean") -> Result:
        """One number of numbers per example: that of the sets that are judged."""
        return over_examples(values[self.judged], codes[self.judged], self._untrained[self.judged], how)

    def by_set(self, values: Floats, codes: Codes, how: str = "mean") -> Result:
        """(eval_set,): the same of every set."""
        places = [self.set_of == place for place in range(len(self.eval_sets))]
        return Result.stack([over_examples(values[at], codes[at], self._untrained[at], how) for at in places])

    def share(self, flags: Bools) -> tuple[Result, Result]:
        """The share of examples with a property, over the judged sets, and (eval_set,) of each."""
        values = np.where(self.reasons > 0, np.nan, flags.astype(np.float64))
        return self.over(values, self.reasons), self.by_set(values, self.reasons)

    @property
    def _untrained(self) -> Bools:
        found: Bools = ~np.asarray(self.counts.any(0))
        return found


def over_examples(values: Floats, codes: Codes, untrained: Bools, how: str = "mean") -> Result:
    """Numbers per example -> one. `mean`: of those that have a value; `median`: those never reached are the largest.

    Examples without a value for a reason of their own (never learned, an infinite margin) are left out of a mean; the
    result's `n` counts the others. One that is missing for any other reason makes the number missing for that reason,
    and so does one whose task was never trained: no two learners are compared over different examples.
    """
    if not values.size:
        return Result.missing("empty_set")
    lost = codes[(codes > 0) & ~np.isin(codes, (NEVER_REACHED, UNDEFINED))]
    there = values[codes == 0]
    if lost.size:
        return Result.of(np.nan, np.bincount(lost).argmax())
    if untrained.any():
        return Result.missing("undefined", "an example's own task was never trained")
    if how == "median":
        known = np.sort(np.where(codes == NEVER_REACHED, np.inf, values)[codes != UNDEFINED])
        half = known[(len(known) - 1) // 2] if len(known) else np.nan
        return Result.missing("never_reached", n=len(known), censored=True) if np.isinf(half) else Result.of(half)
    if not there.size:
        return Result.missing("never_reached" if (codes == NEVER_REACHED).any() else "undefined")
    return Result(float(there.mean()), n=len(there))


@dataclass(frozen=True, eq=False)
class LastAnswers:
    """The last answers of all seeds of a cell, on the examples of the sets that are judged."""

    right: Answers
    """(repeat, example)."""
    reasons: Codes
    """(repeat,): why a seed has none; 0 where it has all."""
    groups: NDArray[np.int64]
    """(repeat,): seeds with the same number were asked the same examples, in the same order."""
    by_set: Sequence[NDArray[np.int64]]
    """(eval_set,): the places of the examples of each set among those that were recorded."""
    all_right: Answers
    """(repeat, example): the last answers on all examples that are looked at."""
    all_reasons: Codes
    """(repeat, example): why an answer is missing."""


@dataclass(frozen=True, eq=False)
class AnswerPair:
    """One seed of a cell beside the same seed of its baseline: the last answers of both to the same examples."""

    learner: Answers
    """(example,), of tasks that both have trained."""
    baseline: Answers
    missing: Result | None
    """Why there is nothing to compare; None where there is."""
    is_same: bool = False
    """Whether it is the baseline itself."""
