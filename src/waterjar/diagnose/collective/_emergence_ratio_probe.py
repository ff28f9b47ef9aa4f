"""Is the collective better than the best that a linear probe reads of one stream?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.answers import by_stream
from waterjar.diagnose.collective.best import best_head, ratio_with_bounds, versus
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.probing import probed
from waterjar.diagnose.collective.resampling import stream_bounds
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, Floats, Result

_BESIDE = {
    "emergence_ratio_probe_low": Beside((), "emergence ratio against probes: lower bound over samples"),
    "emergence_ratio_probe_high": Beside((), "emergence ratio against probes: upper bound over samples"),
    "individual_accuracy_probe": Beside(("stream",), "accuracy of a linear probe of each stream's features"),
    "individual_accuracy_probe_low": Beside(("stream",), "the same: lower bound over samples"),
    "individual_accuracy_probe_high": Beside(("stream",), "the same: upper bound over samples"),
    "best_individual_probe": Beside((), "accuracy of the best stream, as a linear probe reads it"),
    "head_below_probe": Beside(
        ("stream",), "1 where the head is surely less than half as far above one constant answer as a probe beside it"
    ),
    "best_below_probe": Beside((), "the same of the stream whose head is the best: rho says how weak that head is"),
}


@metric(
    "emergence_ratio_probe",
    family="collective",
    long_name="emergence ratio against linear probes of each stream's features",
    formula="acc(collective) / max over streams of acc(ridge probe of its pooled features)",
    direction="higher",
    range=(0, np.inf),
    citation="Alain & Bengio 2017, Understanding intermediate layers using linear classifier probes",
    needs=("streams/pooled", "streams/collective_logits", "probe_samples/label"),
    version=3,
    summary="emergence_ratio_probe_final",
    beside=_BESIDE,
    made_of=("collective_accuracy",),
)
def _measure(
    outputs: StreamOutputs, *, probe_ridge: float, resamples: int, confidence: float, resampling_seed: int
) -> tuple[Result, dict[str, Result]]:
    read = probed(outputs, ridge=probe_ridge)
    if isinstance(read, Result):
        each = Result.of(np.full(len(outputs.names), np.nan), read.code)
        return read, dict(zip(_BESIDE, (read, read, each, each, each, read, each, read), strict=True))
    right, best = read
    found = versus(outputs, right, best, resamples=resamples, seed=resampling_seed)
    ratio, low, high = ratio_with_bounds(found, confidence)
    best_one = found if isinstance(found, Result) else Result(found.best, n=found.n)
    own = (by_stream(right), *stream_bounds(right, confidence))
    flags = _below_probe(outputs, right, confidence)
    return ratio, dict(zip(_BESIDE, (low, high, *own, best_one, *flags), strict=True))


def _below_probe(outputs: StreamOutputs, right: Floats, confidence: float) -> tuple[Result, Result]:
    """Heads that tell far less than a probe (sample, stream) reads of the same features: of each stream, of the best.

    Such a head was not trained, or to do something else than to answer alone. It is less than half as far above the
    best constant answer, and the intervals over samples of both accuracies are apart.
    """
    best = best_head(outputs)
    if isinstance(best, Result):
        return Result.of(np.full(len(outputs.names), np.nan), best.code), best
    assert outputs.test.labels is not None
    chance = float(np.bincount(outputs.test.labels).max() / len(outputs.test.labels))
    head, probe = outputs.accuracies.value, right.mean(0)
    apart = stream_bounds(outputs.test.right, confidence)[1].value < stream_bounds(right, confidence)[0].value
    flags = np.where(np.isnan(head + probe), np.nan, apart & (head - chance < (probe - chance) / 2))
    found = Result.of(flags, NOT_A_NUMBER)
    return found, Result.of(flags[best], NOT_A_NUMBER)
