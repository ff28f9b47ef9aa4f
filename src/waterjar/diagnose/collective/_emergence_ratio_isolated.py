"""Is the collective better than its best stream would be alone?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.answers import by_stream, numbered
from waterjar.diagnose.collective.best import chosen_on, ratio_with_bounds, versus
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.resampling import stream_bounds
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BESIDE = {
    "emergence_ratio_isolated_low": Beside((), "emergence ratio, streams alone: lower bound over samples"),
    "emergence_ratio_isolated_high": Beside((), "emergence ratio, streams alone: upper bound over samples"),
    "individual_accuracy_isolated": Beside(("stream",), "accuracy of each stream with no other around"),
    "individual_accuracy_isolated_low": Beside(("stream",), "the same: lower bound over samples"),
    "individual_accuracy_isolated_high": Beside(("stream",), "the same: upper bound over samples"),
    "best_individual_isolated": Beside((), "accuracy of the best stream, with no other around"),
}
_LACKING = Result.missing("not_recorded", "logits of streams alone were not recorded (streams/isolated_logits)")


@metric(
    "emergence_ratio_isolated",
    family="collective",
    long_name="emergence ratio against streams that see no other stream",
    formula="acc(collective) / max over streams of acc(stream alone), chosen on validation data",
    direction="higher",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 1.1; streams alone: defined here",
    needs=("streams/isolated_logits", "streams/collective_logits", "probe_samples/label"),
    summary="emergence_ratio_isolated_final",
    version=2,
    beside=_BESIDE,
    made_of=("collective_accuracy",),
)
def _measure(
    outputs: StreamOutputs, *, resamples: int, confidence: float, resampling_seed: int
) -> tuple[Result, dict[str, Result]]:
    gone = outputs.test.lacking or (_LACKING if outputs.test.isolated is None else None)
    if gone is not None:
        each = Result.of(np.full(len(outputs.names), np.nan), gone.code)
        return gone, dict(zip(_BESIDE, (gone, gone, each, each, each, gone), strict=True))
    right = outputs.test.isolated_right
    best = chosen_on(outputs.validation, numbered(right), outputs.names, isolated=True)
    found = versus(outputs, right, best, resamples=resamples, seed=resampling_seed)
    ratio, low, high = ratio_with_bounds(found, confidence)
    best_one = found if isinstance(found, Result) else Result(found.best, n=found.n)
    own = (by_stream(right), *stream_bounds(right, confidence))
    return ratio, dict(zip(_BESIDE, (low, high, *own, best_one), strict=True))
