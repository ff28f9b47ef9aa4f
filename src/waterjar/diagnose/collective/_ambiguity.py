"""How much do streams differ in what they think likely? Just so much better is their mean than they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Floats, Result

_BESIDE = {
    "ambiguity_mean_error": Beside((), "mean over streams of the Brier score"),
    "ambiguity_error_of_mean": Beside((), "Brier score of the mean probability: mean error less ambiguity"),
    "ambiguity_nll": Beside((), "mean NLL of streams less the NLL of their mean probability", "nat"),
}


def ambiguity(probabilities: ArrayLike) -> Floats:
    """(sample,): mean over streams of the squared distance to their mean; probabilities (sample, stream, class).

    The Brier score of the mean is the mean Brier score less this, sample by sample (Krogh & Vedelsby 1995).

    >>> ambiguity([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    array([0.5, 0. ])
    """
    values = np.asarray(probabilities, np.float64)
    apart = values - values.mean(1, keepdims=True)
    return np.asarray((apart**2).sum(-1).mean(1))


@metric(
    "ambiguity",
    family="collective",
    long_name="ambiguity: squared distance of the streams' probabilities from their mean",
    formula="mean over streams of |p_s - mean p|^2 = mean Brier score - Brier score of the mean",
    range=(0, 2),
    citation="Krogh & Vedelsby 1995, Neural network ensembles, cross validation, and active learning",
    needs=("streams/logits", "probe_samples/label"),
    summary="ambiguity_final",
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs) -> tuple[Result, dict[str, Result]]:
    if outputs.compared is not None:
        return outputs.compared, dict.fromkeys(_BESIDE, outputs.compared)
    assert outputs.test.labels is not None
    if not outputs.likely[outputs.alive].all():
        gone = Result.missing("not_a_number", "a stream has infinite logits, and so no probabilities")
        return gone, dict.fromkeys(_BESIDE, gone)
    each, labels = outputs.probabilities, outputs.test.labels
    mean, wanted = each.mean(1), np.eye(each.shape[-1])[labels]
    rows = np.arange(len(labels))
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.log(mean[rows, labels]) - np.log(each[rows, :, labels]).mean(1)
    undefined = Result.missing("undefined", "a stream and the mean both give a label no probability")
    finite = Result(float(gap.mean()), n=len(labels)) if not np.isnan(gap).any() else undefined
    numbers = (
        Result(float(((each - wanted[:, None]) ** 2).sum(-1).mean())),
        Result(float(((mean - wanted) ** 2).sum(-1).mean())),
        finite,
    )
    return Result(float(ambiguity(each).mean()), n=len(labels)), dict(zip(_BESIDE, numbers, strict=True))
