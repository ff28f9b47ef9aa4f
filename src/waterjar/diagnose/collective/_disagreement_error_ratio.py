"""Is disagreement large against the error? Then a collective can help."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective._disagreement import disagreement
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.pairs import ALONE, mean_of_pairs
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def disagreement_error_ratio(predictions: ArrayLike, labels: ArrayLike) -> Result:
    """DER = mean disagreement of two different streams / mean error of a stream; predictions (sample, stream).

    Above 1, ensembles are expected to help. Undefined of one stream, and where no stream makes an error.

    >>> float(disagreement_error_ratio([[0, 1], [1, 1]], [0, 1]))
    2.0
    """
    told, wanted = np.asarray(predictions), np.asarray(labels)
    if told.shape[1] < 2:
        return ALONE
    error = float((told != wanted[:, None]).mean())
    if error == 0.0:
        return Result.missing("undefined", "no stream makes an error", n=len(told))
    return Result(float(mean_of_pairs(disagreement(told))) / error, n=len(told))


@metric(
    "disagreement_error_ratio",
    family="collective",
    long_name="disagreement-error ratio: mean disagreement of streams over their mean error",
    formula="DER = mean over i < j of P(answer_i != answer_j) / mean over streams of err",
    range=(0, np.inf),
    citation="Theisen et al. 2023, When are ensembles really effective?",
    needs=("streams/logits", "probe_samples/label"),
    summary="disagreement_error_ratio_final",
    symbol="DER",
    made_of=("disagreement",),
)
def _measure(outputs: StreamOutputs) -> Result:
    if outputs.compared is not None:
        return outputs.compared
    assert outputs.test.labels is not None
    return disagreement_error_ratio(outputs.predictions, outputs.test.labels)
