"""Accuracy of the collective."""

from __future__ import annotations

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.stats.shares import share_interval

_BESIDE = {
    "collective_accuracy_low": Beside((), "accuracy of the collective: lower bound over samples, of this network"),
    "collective_accuracy_high": Beside((), "accuracy of the collective: upper bound over samples, of this network"),
}


@metric(
    "collective_accuracy",
    family="collective",
    long_name="accuracy of the collective",
    formula="right / all",
    direction="higher",
    range=(0, 1),
    citation="the seed document, Metrics and Evaluation 1.2; Wilson 1927 (the interval)",
    needs=("streams/collective_logits", "probe_samples/label"),
    summary="collective_accuracy_final",
    version=2,
    matters=3,
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    if outputs.scored is not None:
        return outputs.scored, dict.fromkeys(_BESIDE, outputs.scored)
    right = outputs.test.collective_right
    _, *ends = share_interval(right.sum(), len(right), confidence=confidence)
    bounds = [Result(float(end)) for end in ends]
    return Result(float(right.mean()), n=len(right)), dict(zip(_BESIDE, bounds, strict=True))
