"""Is it more robust than its control, at equal clean accuracy? Under attack."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named, with_bounds

_TABLE = ("other_model", "attack", "eps")


@metric(
    "adversarial_gain",
    family="robustness",
    long_name="what is retained under attack, less what the control retains",
    formula="mean over samples of (right - right of the control), each attacked, over samples all had right when clean",
    direction="higher",
    range=(-1, 1),
    citation="defined here; interval of Bonett & Price 2012",
    needs=("probes/robustness_pairs",),
    summary="adversarial_gain_final",
    beside={
        "adversarial_gain_low": Beside((), "gain over the control: lower bound, over samples"),
        "adversarial_gain_high": Beside((), "gain over the control: upper bound, over samples"),
        "attack_gain": Beside(_TABLE, "what is retained under an attack, less what the other model retains"),
        "attack_gain_low": Beside(_TABLE, "gain over the other model: lower bound, over samples"),
        "attack_gain_high": Beside(_TABLE, "gain over the other model: upper bound, over samples"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = probe.pairs.bounded("retained_difference", probe.control, probe.attacked)
    table = named("attack_gain", probe.attack_table(probe.pairs, "retained_difference", "other_model"))
    return numbers[0], {**with_bounds("adversarial_gain", numbers), **table}
