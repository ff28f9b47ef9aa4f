"""How often do two streams answer differently?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.pairs import among, mean_of_pairs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Floats, Result

_MATRIX = "disagreement_matrix"


def disagreement(predictions: ArrayLike) -> Floats:
    """(stream, stream): share of samples on which two streams answer differently; predictions (sample, stream).

    >>> disagreement([[0, 0, 1], [1, 0, 1]])
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 1. ],
           [0.5, 1. , 0. ]])
    """
    told = np.asarray(predictions)
    return np.array([(told != told[:, [i]]).mean(0) for i in range(told.shape[1])], np.float64)


@metric(
    "disagreement",
    family="collective",
    long_name="disagreement: share of samples on which two streams answer differently, mean over pairs",
    formula="mean over i < j of P(answer_i != answer_j)",
    range=(0, 1),
    citation="Skalak 1996; Kuncheva & Whitaker 2003, Measures of diversity in classifier ensembles",
    needs=("streams/logits",),
    summary="disagreement_final",
    beside={_MATRIX: Beside(("stream", "other_stream"), "share of samples on which two streams answer differently")},
)
def _measure(outputs: StreamOutputs) -> tuple[Result, dict[str, Result]]:
    gone = outputs.compared
    if gone is not None:
        return gone, {_MATRIX: among(gone, outputs.names)}
    matrix = disagreement(outputs.predictions)
    return mean_of_pairs(matrix), {_MATRIX: among(matrix, outputs.names, outputs.alive)}
