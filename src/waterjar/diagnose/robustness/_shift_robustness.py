"""The share of clean accuracy that is left under shifts, and what is retained beside it."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_RECORDED, Result
from waterjar.diagnose.robustness.conditions import CLEAN
from waterjar.diagnose.robustness.inputs import ENDS, RobustnessProbe, named

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
        "model_clean_accuracy": Beside(("model",), "clean accuracy of each model"),
        "model_clean_accuracy_low": Beside(("model",), "clean accuracy of each model: lower bound, over samples"),
        "model_clean_accuracy_high": Beside(("model",), "clean accuracy of each model: upper bound, over samples"),
        "shift_retained": Beside(_CURVE, "share still right of the samples that all models had right when clean"),
        "shift_retained_low": Beside(_CURVE, "share still right: lower bound, over samples"),
        "shift_retained_high": Beside(_CURVE, "share still right: upper bound, over samples"),
    },
    made_of=("avg_shifted",),
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    found = probe.relative_to_clean(probe.own.number("average_accuracy", probe.model, probe.average))
    curves = named("shift_retained", probe.severity_curves(probe.own, "retained", "model"))
    each = [probe.own.bounded("accuracy", model, CLEAN) for model in probe.axes["model"]]
    clean = {f"model_clean_accuracy{end}": _stacked([one[i] for one in each]) for i, end in enumerate(ENDS)}
    return found, {"clean_accuracy": probe.clean, **clean, **curves}


def _stacked(each: list[Result]) -> Result:
    return Result.stack(each) if each else Result.of(np.empty(0), NOT_RECORDED)
