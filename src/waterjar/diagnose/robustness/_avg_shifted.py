"""How much is right of shifted images, and the curves over severities beside it."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named, with_bounds

_CURVE = ("model", "ladder", "shift", "severity")


@metric(
    "avg_shifted",
    family="robustness",
    long_name="accuracy averaged over shifts",
    formula="mean over the shifts of a ladder at a severity of the accuracy",
    direction="higher",
    range=(0, 1),
    citation="the seed document, 4.1; Hendrycks & Dietterich 2019 (`cifar_c`)",
    needs=("probes/robustness",),
    summary="avg_shifted_final",
    matters=2,
    beside={
        "avg_shifted_low": Beside((), "accuracy averaged over shifts: lower bound, over samples"),
        "avg_shifted_high": Beside((), "accuracy averaged over shifts: upper bound, over samples"),
        "shifted_accuracy": Beside(_CURVE, "accuracy under a shift"),
        "shifted_accuracy_low": Beside(_CURVE, "accuracy under a shift: lower bound, over samples"),
        "shifted_accuracy_high": Beside(_CURVE, "accuracy under a shift: upper bound, over samples"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = probe.own.bounded("average_accuracy", probe.model, probe.average)
    curves = named("shifted_accuracy", probe.severity_curves(probe.own, "accuracy", "model"))
    return numbers[0], {**with_bounds("avg_shifted", numbers), **curves}
