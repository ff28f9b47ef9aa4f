"""How much of the error of the best stream does the collective take away?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.best import chosen_on, reduction_with_bounds, versus
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BESIDE = {
    "error_reduction_low": Beside((), "error reduction: lower bound over samples, of this network"),
    "error_reduction_high": Beside((), "error reduction: upper bound over samples, of this network"),
}


@metric(
    "error_reduction",
    family="collective",
    long_name="share of the best stream's error that the collective takes away",
    formula="1 - (1 - acc(collective)) / (1 - acc(best stream)), chosen on validation data",
    direction="higher",
    range=(-np.inf, 1),
    citation="Ali & Pazzani 1996, Error reduction through learning multiple descriptions",
    needs=("streams/logits", "streams/collective_logits", "probe_samples/label"),
    summary="error_reduction_final",
    version=2,
    matters=2,
    beside=_BESIDE,
    made_of=("collective_accuracy", "best_individual"),
)
def _measure(
    outputs: StreamOutputs, *, resamples: int, confidence: float, resampling_seed: int
) -> tuple[Result, dict[str, Result]]:
    if outputs.compared is not None:
        return outputs.compared, dict.fromkeys(_BESIDE, outputs.compared)
    best = chosen_on(outputs.validation, outputs.alive, outputs.names, isolated=False)
    found = versus(outputs, outputs.test.right, best, resamples=resamples, seed=resampling_seed)
    reduction, low, high = reduction_with_bounds(found, confidence)
    return reduction, {"error_reduction_low": low, "error_reduction_high": high}
