"""Accuracy under shifts beyond what clean accuracy predicts."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, with_bounds


@metric(
    "effective_robustness",
    family="robustness",
    long_name="accuracy averaged over shifts, less what clean accuracy predicts",
    formula="avg_shifted - expit(a + b logit clean), a and b of the line through three or more reference models",
    direction="higher",
    range=(-1, 1),
    citation="Taori et al. 2020, eq. 1",
    needs=("probes/robustness",),
    summary="effective_robustness_final",
    beside={
        "effective_robustness_low": Beside((), "effective robustness: lower bound, over samples"),
        "effective_robustness_high": Beside((), "effective robustness: upper bound, over samples"),
    },
    made_of=("avg_shifted", "clean_accuracy"),
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = probe.own.bounded("average_effective_robustness", probe.model, probe.average)
    return numbers[0], with_bounds("effective_robustness", numbers)
