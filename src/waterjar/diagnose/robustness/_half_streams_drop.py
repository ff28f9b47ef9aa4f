"""What the loss of half of the streams costs."""

from __future__ import annotations

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.robustness.inputs import RobustnessProbe


@metric(
    "half_streams_drop",
    family="robustness",
    long_name="accuracy lost when a random half of the streams fails",
    formula="accuracy of all - accuracy with half of the streams, mean over draws",
    direction="lower",
    range=(-1, 1),
    citation="the seed document, 4.3",
    needs=("probes/stream_failure",),
    summary="half_streams_drop_final",
    made_of=("failure_accuracy",),
)
def _measure(probe: RobustnessProbe) -> Result:
    numbers = [probe.failure.number("accuracy", label) for label in ("all", "half_streams")]
    gone = next((one for one in numbers if one.is_missing), None)
    return gone or Result(float(numbers[0]) - float(numbers[1]))
