"""Is the collective better than a probe of all streams' features at once: routing, or only more features?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.best import ratio_with_bounds, versus
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.probing import probed
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BESIDE = {
    "emergence_ratio_concatenated_low": Beside((), "the same: lower bound over samples"),
    "emergence_ratio_concatenated_high": Beside((), "the same: upper bound over samples"),
    "concatenated_accuracy": Beside((), "accuracy of a linear probe of the features of all streams at once"),
}


@metric(
    "emergence_ratio_concatenated",
    family="collective",
    long_name="accuracy of the collective over that of a linear probe of all streams' features at once",
    formula="acc(collective) / acc(ridge probe of all pooled features, concatenated)",
    direction="higher",
    range=(0, np.inf),
    citation="Alain & Bengio 2017 (probes); the control is defined here",
    needs=("streams/pooled", "streams/collective_logits", "probe_samples/label"),
    summary="emergence_ratio_concatenated_final",
    version=2,
    beside=_BESIDE,
    made_of=("collective_accuracy",),
)
def _measure(
    outputs: StreamOutputs, *, probe_ridge: float, resamples: int, confidence: float, resampling_seed: int
) -> tuple[Result, dict[str, Result]]:
    read = probed(outputs, ridge=probe_ridge, joined=True)
    if isinstance(read, Result):
        return read, dict.fromkeys(_BESIDE, read)
    right, _ = read
    found = versus(outputs, right, 0, resamples=resamples, seed=resampling_seed)
    ratio, low, high = ratio_with_bounds(found, confidence)
    return ratio, dict(zip(_BESIDE, (low, high, Result(float(right.mean()), n=len(right))), strict=True))
