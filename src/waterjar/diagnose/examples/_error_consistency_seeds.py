"""Do the seeds of a learner err on the same examples?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.examples.agreement import error_consistency
from waterjar.diagnose.examples.inputs import LastAnswers
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.run.schema import REASONS

_ALONE = Result.missing("undefined", "no other seed was asked the same examples")


@metric(
    "error_consistency_seeds",
    family="examples",
    long_name="error consistency with the other seeds of the learner, mean over them",
    formula="mean over other seeds of (c_obs - c_exp) / (1 - c_exp)",
    range=(-1, 1),
    citation="Geirhos, Meding & Wichmann 2020, Beyond Accuracy: Error Consistency",
    needs=("examples/correct",),
    between_seeds=True,
)
def _measure(answers: LastAnswers) -> Result:
    seeds = range(len(answers.reasons))
    there = [seed for seed in seeds if answers.reasons[seed] == 0]
    found: dict[int, list[Result]] = {seed: [] for seed in seeds}
    for place, one in enumerate(there):
        for other in there[place + 1 :]:
            if answers.groups[one] == answers.groups[other]:
                kappa = error_consistency(answers.right[one], answers.right[other]).kappa
                found[one].append(kappa)
                found[other].append(kappa)
    return Result.stack([_mean(found[seed], int(answers.reasons[seed])) for seed in seeds])


def _mean(results: list[Result], code: int) -> Result:
    """Over the other seeds that have a value."""
    if code:
        return Result.missing(REASONS[code])
    values = [float(result) for result in results if not result.is_missing]
    if values:
        return Result(float(np.mean(values)), n=len(values))
    return results[0] if results else _ALONE
