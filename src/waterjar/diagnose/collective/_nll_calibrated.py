"""Negative log-likelihood of the collective after temperature scaling."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.calibration import NO_TEMPERATURE, calibrated_nll
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import UNDEFINED, Result
from waterjar.run.combining import log_softmax

_BESIDE = {"temperature": Beside((), "temperature of the collective's logits with the lowest NLL")}


@metric(
    "nll_calibrated",
    family="collective",
    long_name="negative log-likelihood of the collective after temperature scaling of its averaged output",
    formula="- mean over samples of log softmax(logits / T)[label], T fitted on validation data, or cross-fitted",
    units="nat",
    direction="lower",
    range=(0, np.inf),
    citation="Guo et al. 2017, On calibration of modern neural networks; Ashukha et al. 2020",
    needs=("streams/collective_logits", "probe_samples/label"),
    version=2,
    summary="nll_calibrated_final",
    matters=4,
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs, *, resampling_seed: int) -> tuple[Result, dict[str, Result]]:
    found = calibrated(outputs, resampling_seed)
    if isinstance(found, Result):
        return found, dict.fromkeys(_BESIDE, found)
    loss, temperature = found
    return Result(loss), {"temperature": Result.of(temperature, UNDEFINED)}


def calibrated(outputs: StreamOutputs, seed: int) -> tuple[float, float] | Result:
    """The number, and the temperature; or why there is none."""
    if outputs.scored is not None:
        return outputs.scored
    test, other = outputs.test, outputs.validation
    assert test.collective is not None and test.labels is not None
    fitted = None
    if other is not None and other.collective is not None and other.labels is not None and len(other.labels):
        fitted = (other.collective, other.labels)
    elif len(test.labels) < 2:
        return Result.missing("undefined", "a temperature needs samples beside those that are scored")
    for logits in (test.collective, *(() if fitted is None else fitted[:1])):
        if np.isnan(log_softmax(logits)).any():
            return Result.missing("not_a_number", "logits that are infinite or NaN have no probabilities to calibrate")
    found = calibrated_nll(test.collective, test.labels, fitted, seed=seed)
    return NO_TEMPERATURE if np.isnan(found[0]) else found
