"""What the loss of one stream costs."""

from __future__ import annotations

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe

_EVERY = ("failure",)
_WITHOUT = "without_"


@metric(
    "failure_drop",
    family="robustness",
    long_name="accuracy lost when the one stream fails that is missed most",
    formula="accuracy of all - min over streams of the accuracy without it",
    direction="lower",
    range=(-1, 1),
    citation="the seed document, 4.3",
    needs=("probes/stream_failure",),
    summary="failure_drop_final",
    matters=4,
    beside={
        "failure_accuracy": Beside(_EVERY, "accuracy with streams that fail"),
        "failure_accuracy_low": Beside(_EVERY, "accuracy with streams that fail: lower bound"),
        "failure_accuracy_high": Beside(_EVERY, "accuracy with streams that fail: upper bound"),
    },
)
def _measure(probe: RobustnessProbe) -> tuple[Result, dict[str, Result]]:
    labels = probe.axes["failure"]
    beside = {
        f"failure_accuracy{end}": Result.stack([probe.failure.number(f"accuracy{end}", label) for label in labels])
        for end in ("", "_low", "_high")
    }
    all_of_them = probe.failure.number("accuracy", "all")
    without = [probe.failure.number("accuracy", label) for label in labels if label.startswith(_WITHOUT)]
    gone = next((one for one in (all_of_them, *without) if one.is_missing), None)
    if gone is not None or not without:
        return gone or Result.missing("not_recorded", "no single stream was made to fail"), beside
    return Result(float(all_of_them) - min(map(float, without)), n=len(without)), beside
