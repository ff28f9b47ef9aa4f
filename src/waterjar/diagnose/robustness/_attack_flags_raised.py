"""Are the attacks to be trusted? How many signs of hidden slopes there are, and which."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.diagnose.robustness.inputs import RobustnessProbe


@metric(
    "attack_flags_raised",
    family="robustness",
    long_name="signs that the network hides its slopes, so that attacks fail",
    formula="number of flags above their limits; those that were not looked at count for nothing",
    units="flag",
    direction="lower",
    range=(0, len(FLAGS)),
    citation="Athalye et al. 2018; Carlini et al. 2019, sec. 3.2; Croce & Hein 2020 (the checks of AutoAttack)",
    needs=("probes/attack_flags",),
    summary="attack_flags_raised_final",
    beside={
        "attack_flag": Beside(("flag",), "the number behind each flag"),
        "attack_flag_raised": Beside(("flag",), "whether the flag is raised: 1 or 0"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = [probe.flags.number(name, probe.model) for name in FLAGS]
    raised = [
        one if one.is_missing else Result(float(float(one) > flag.limit))
        for one, flag in zip(numbers, FLAGS.values(), strict=True)
    ]
    beside = {"attack_flag": Result.stack(numbers), "attack_flag_raised": Result.stack(raised)}
    broken = next((one for one in numbers if one.is_missing and one.reason != "not_recorded"), None)
    looked_at = [one for one in raised if not one.is_missing]
    if broken is not None or not looked_at:
        return broken or Result.missing("not_recorded", "no flag was looked at"), beside
    return Result(sum(map(float, looked_at)), n=len(looked_at)), beside
