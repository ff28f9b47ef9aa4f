"""Is it more robust than its control, at equal clean accuracy? Under shifts."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe, named, with_bounds

_CURVE = ("other_model", "ladder", "shift", "severity")


@metric(
    "robustness_gain",
    family="robustness",
    long_name="what is retained under shifts, less what the control retains",
    formula="mean over shifts and samples of (right - right of the control), of samples all had right when clean",
    direction="higher",
    range=(-1, 1),
    citation="defined here; equal clean accuracy after Taori et al. 2020, interval of Bonett & Price 2012",
    needs=("probes/robustness_pairs",),
    summary="robustness_gain_final",
    matters=1,
    beside={
        "robustness_gain_low": Beside((), "gain over the control: lower bound, over samples"),
        "robustness_gain_high": Beside((), "gain over the control: upper bound, over samples"),
        "shift_gain": Beside(_CURVE, "what is retained under a shift, less what the other model retains"),
        "shift_gain_low": Beside(_CURVE, "gain over the other model: lower bound, over samples"),
        "shift_gain_high": Beside(_CURVE, "gain over the other model: upper bound, over samples"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    numbers = probe.pairs.bounded("average_retained_difference", probe.control, probe.average)
    curves = named("shift_gain", probe.severity_curves(probe.pairs, "retained_difference", "other_model"))
    return numbers[0], {**with_bounds("robustness_gain", numbers), **curves}
