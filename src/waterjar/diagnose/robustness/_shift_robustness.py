"""The share of clean accuracy that is left under shifts, and what is retained beside it."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named

_CURVE = ("model", "ladder", "shift", "severity")


@metric(
    "shift_robustness",
    family="robustness",
    long_name="accuracy averaged over shifts, as a share of clean accuracy",
    formula="avg_shifted / clean; beside it shift_retained, of samples that all models had right when clean",
    direction="higher",
    range=(0, float("inf")),
    citation="the seed document, 4.1",
    needs=("probes/robustness",),
    summary="shift_robustness_final",
    beside={
        "clean_accuracy": Beside((), "clean accuracy of the model"),
        "shift_retained": Beside(_CURVE, "share still right of the samples that all models had right when clean"),
        "shift_retained_low": Beside(_CURVE, "share still right: lower bound, over samples"),
        "shift_retained_high": Beside(_CURVE, "share still right: upper bound, over samples"),
    },
    made_of=("avg_shifted",),
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    found = probe.relative_to_clean(probe.own.number("average_accuracy", probe.model, probe.average))
    curves = named("shift_retained", probe.severity_curves(probe.own, "retained", "model"))
    return found, {"clean_accuracy": probe.clean, **curves}
