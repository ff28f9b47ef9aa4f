"""Expected calibration error: shown, and never ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.run.combining import log_softmax

BINS = 15


def expected_calibration_error(logits: ArrayLike, labels: ArrayLike, bins: int = BINS) -> float:
    """Sum over bins of confidence of their share x |accuracy - mean confidence|; logits (sample, class).

    Bins are of equal width, (0, 1/15], ..., of the largest probability.

    >>> round(expected_calibration_error(np.log([[0.8, 0.2], [0.8, 0.2]]), [0, 1]), 6)
    0.3
    """
    probabilities = np.exp(log_softmax(logits))
    sure, right = probabilities.max(-1), probabilities.argmax(-1) == np.asarray(labels)
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, bins - 1)
    gaps = np.bincount(place, weights=right - sure, minlength=bins)
    return float(np.abs(gaps).sum() / len(sure))


@metric(
    "ece",
    family="collective",
    long_name="expected calibration error of the collective, 15 bins; it depends on the bins: never rank by it",
    formula="sum over bins of share x |accuracy - mean confidence|",
    range=(0, 1),
    citation="Naeini, Cooper & Hauskrecht 2015; Guo et al. 2017; Ashukha et al. 2020 (why it does not rank)",
    needs=("streams/collective_logits", "probe_samples/label"),
    summary="ece_final",
    symbol="ECE",
)
def _measure(outputs: StreamOutputs) -> Result:
    if outputs.scored is not None:
        return outputs.scored
    assert outputs.test.collective is not None and outputs.test.labels is not None
    if np.isnan(log_softmax(outputs.test.collective)).any():
        return Result.missing("not_a_number", "logits that are infinite")
    return Result(expected_calibration_error(outputs.test.collective, outputs.test.labels), n=len(outputs.test.labels))
