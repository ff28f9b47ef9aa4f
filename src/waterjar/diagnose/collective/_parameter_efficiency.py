"""Accuracy per million parameters."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.stats.shares import share_interval

_UNITS = "1e-6 / parameter"
_BESIDE = {
    "parameter_efficiency_low": Beside((), "accuracy per million parameters: lower bound over samples", _UNITS),
    "parameter_efficiency_high": Beside((), "accuracy per million parameters: upper bound over samples", _UNITS),
    "parameter_efficiency_trainable": Beside((), "accuracy per million parameters that are trained", _UNITS),
    "parameter_efficiency_trainable_low": Beside((), "the same of those that are trained: lower bound", _UNITS),
    "parameter_efficiency_trainable_high": Beside((), "the same of those that are trained: upper bound", _UNITS),
}


@metric(
    "parameter_efficiency",
    family="collective",
    long_name="accuracy of the collective per million of all its parameters",
    formula="acc(collective) / (parameters / 10^6)",
    units=_UNITS,
    direction="higher",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 1.3",
    needs=("streams/parameters", "streams/collective_logits", "probe_samples/label"),
    summary="parameter_efficiency_final",
    version=2,
    beside=_BESIDE,
    made_of=("collective_accuracy",),
)
def _measure(outputs: StreamOutputs, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    whole, *bounds = _per_million(outputs, outputs.parameters, confidence)
    trained = _per_million(outputs, outputs.trainable_parameters, confidence)
    return whole, dict(zip(_BESIDE, (*bounds, *trained), strict=True))


def _per_million(outputs: StreamOutputs, parameters: float | None, confidence: float) -> tuple[Result, Result, Result]:
    """The number, and its bounds over samples: those of the accuracy."""
    if outputs.scored is not None:
        return (outputs.scored,) * 3
    if parameters is None:
        return (Result.missing("not_recorded", "the number of parameters was not recorded"),) * 3
    if not parameters > 0:
        return (Result.missing("undefined", f"{parameters:g} parameters"),) * 3
    right = outputs.test.collective_right
    share, low, high = (float(one) for one in share_interval(right.sum(), len(right), confidence=confidence))
    millions = parameters / 1e6
    return Result(share / millions, n=len(right)), Result(low / millions), Result(high / millions)
