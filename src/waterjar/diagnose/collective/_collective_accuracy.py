"""Accuracy of the collective."""

from __future__ import annotations

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.resampling import share_bounds
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

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
    citation="the seed document, Metrics and Evaluation 1.2; Clopper & Pearson 1934 (the interval)",
    needs=("streams/collective_logits", "probe_samples/label"),
    summary="collective_accuracy_final",
    matters=3,
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    if outputs.scored is not None:
        return outputs.scored, dict.fromkeys(_BESIDE, outputs.scored)
    right = outputs.test.collective_right
    low, high = share_bounds(float(right.sum()), len(right), confidence)
    bounds = (Result(low), Result(high))
    return Result(float(right.mean()), n=len(right)), dict(zip(_BESIDE, bounds, strict=True))
