"""Accuracy at the last evaluation, of which the interval is over seeds and samples."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.examples.inputs import LastAnswers
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


@metric(
    "example_accuracy",
    family="examples",
    long_name="accuracy over the examples at the last evaluation",
    formula="right / all; example_accuracy_low and _high bound its mean over other seeds and other samples",
    direction="higher",
    range=(0, 1),
    citation="Searle, Casella & McCulloch 1992, Variance Components, ch. 4 (the interval)",
    needs=("examples/correct",),
    beside={"example_accuracy_by_set": Beside(("eval_set",), "the same of each evaluation set")},
)
def _measure(answers: LastAnswers) -> tuple[Result, dict[str, Result]]:
    gone = answers.reasons > 0
    shares = np.where(gone, np.nan, (answers.right == 1).mean(1))
    by_set = np.full((len(gone), len(answers.by_set)), np.nan)
    codes = np.zeros(by_set.shape, np.uint8)
    for place, rows in enumerate(answers.by_set):
        codes[:, place] = answers.all_reasons[:, rows].max(1, initial=0)
        if len(rows):
            by_set[:, place] = (answers.all_right[:, rows] == 1).mean(1)
    by_set[codes > 0] = np.nan
    return Result.of(shares, answers.reasons), {"example_accuracy_by_set": Result.of(by_set, codes)}
