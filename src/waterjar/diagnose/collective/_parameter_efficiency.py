"""Accuracy per million parameters."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_UNITS = "1e-6 / parameter"
_BESIDE = {
    "parameter_efficiency_trainable": Beside((), "accuracy per million parameters that are trained", _UNITS),
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
    beside=_BESIDE,
    made_of=("collective_accuracy",),
)
def _measure(outputs: StreamOutputs) -> tuple[Result, dict[str, Result]]:
    counts = (outputs.parameters, outputs.trainable_parameters)
    whole, trained = (_per_million(outputs, count) for count in counts)
    return whole, {"parameter_efficiency_trainable": trained}


def _per_million(outputs: StreamOutputs, parameters: float | None) -> Result:
    if outputs.scored is not None:
        return outputs.scored
    if parameters is None:
        return Result.missing("not_recorded", "the number of parameters was not recorded")
    if not parameters > 0:
        return Result.missing("undefined", f"{parameters:g} parameters")
    right = outputs.test.collective_right
    return Result(float(right.mean()) / (parameters / 1e6), n=len(right))
