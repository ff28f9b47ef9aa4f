"""How much is right of attacked images, and all attacks beside it."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named, with_bounds

_TABLE = ("model", "attack", "eps")


@metric(
    "adversarial_accuracy",
    family="robustness",
    long_name="accuracy under attack",
    formula="share of images that are right after the attack; of `worst`, after every one of them",
    direction="higher",
    range=(0, 1),
    citation="the seed document, 4.2 (FGSM); Croce & Hein 2020 (worst per image)",
    needs=("probes/robustness",),
    summary="adversarial_accuracy_final",
    matters=3,
    beside={
        "adversarial_accuracy_low": Beside((), "accuracy under attack: lower bound, over samples"),
        "adversarial_accuracy_high": Beside((), "accuracy under attack: upper bound, over samples"),
        "attacked_accuracy": Beside(_TABLE, "accuracy under an attack"),
        "attacked_accuracy_low": Beside(_TABLE, "accuracy under an attack: lower bound, over samples"),
        "attacked_accuracy_high": Beside(_TABLE, "accuracy under an attack: upper bound, over samples"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = probe.own.bounded("accuracy", probe.model, probe.attacked)
    table = named("attacked_accuracy", probe.attack_table(probe.own, "accuracy", "model"))
    return numbers[0], {**with_bounds("adversarial_accuracy", numbers), **table}
