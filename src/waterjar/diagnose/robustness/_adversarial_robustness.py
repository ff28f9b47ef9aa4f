"""The share of clean accuracy that is left under attack, and what is retained beside it."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named

_TABLE = ("model", "attack", "eps")


@metric(
    "adversarial_robustness",
    family="robustness",
    long_name="accuracy under attack, as a share of clean accuracy",
    formula="adversarial_accuracy / clean",
    direction="higher",
    range=(0, float("inf")),
    citation="the seed document, 4.2",
    needs=("probes/robustness",),
    summary="adversarial_robustness_final",
    beside={
        "attack_retained": Beside(_TABLE, "share still right of the samples that all models had right when clean"),
        "attack_retained_low": Beside(_TABLE, "share still right: lower bound, over samples"),
        "attack_retained_high": Beside(_TABLE, "share still right: upper bound, over samples"),
    },
    made_of=("adversarial_accuracy", "clean_accuracy"),
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    found = probe.relative_to_clean(probe.own.number("accuracy", probe.model, probe.attacked))
    return found, named("attack_retained", probe.attack_table(probe.own, "retained", "model"))
