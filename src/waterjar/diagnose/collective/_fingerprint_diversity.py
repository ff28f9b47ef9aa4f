"""How different are the fingerprints of streams?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import Fingerprints
from waterjar.diagnose.collective.pairs import ALONE, among, mean_of_pairs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, UNDEFINED, Floats, Result

_MATRIX, _MEAN = "fingerprint_similarity", "pairwise_similarity"
NO_DIRECTION = "a fingerprint that is zero has no direction"


def fingerprint_similarity(fingerprints: ArrayLike) -> Floats:
    """(stream, stream): cosine of the fingerprints (stream, component); NaN of one that is zero.

    >>> fingerprint_similarity([[1.0, 0.0], [-2.0, 0.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    values = np.asarray(fingerprints, np.float64)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    unit = np.divide(values, length, out=np.full(values.shape, np.nan), where=length > 0)
    return np.asarray(np.clip(unit @ unit.T, -1.0, 1.0))


def fingerprint_diversity(fingerprints: ArrayLike) -> Result:
    """D = 1 - mean absolute cosine of two different streams' fingerprints (stream, component).

    Random ones of 64 components have 0.90: an untrained network passes a target of 0.8.

    >>> float(fingerprint_diversity([[1.0, 0.0], [0.0, 1.0]]))
    1.0
    """
    return _of(fingerprint_similarity(fingerprints))


def _of(similarity: Floats) -> Result:
    if len(similarity) < 2:
        return ALONE
    found = float(mean_of_pairs(np.abs(similarity)).value)
    if np.isnan(found):
        return Result.missing("undefined", NO_DIRECTION)
    return Result(1.0 - found, n=len(similarity))


@metric(
    "fingerprint_diversity",
    family="collective",
    long_name="fingerprint diversity: 1 less the mean absolute cosine between streams",
    formula="D = 1 - mean over i != j of |cos(f_i, f_j)|",
    range=(0, 1),
    citation="the seed document, Metrics and Evaluation 2.3",
    needs=("streams/fingerprint",),
    summary="fingerprint_diversity_final",
    version=2,
    beside={
        _MATRIX: Beside(("stream", "other_stream"), "cosine of two streams' fingerprints"),
        _MEAN: Beside((), "mean absolute cosine between streams: 1 less the diversity"),
    },
)
def _measure(prints: Fingerprints) -> tuple[Result, dict[str, Result]]:
    alive, zero = prints.alive, prints.zero
    if not alive.any():
        gone = Result.missing("undefined", NO_DIRECTION) if zero.any() else Result.missing("not_a_number")
        return gone, {_MATRIX: among(gone, prints.names), _MEAN: gone}
    matrix = fingerprint_similarity(prints.values[alive])
    found = _of(matrix)
    mean = found if found.is_missing else Result(1.0 - float(found))
    placed = among(matrix, prints.names, alive)
    without = np.where(zero[:, None] | zero, UNDEFINED, NOT_A_NUMBER)
    return found, {_MATRIX: Result.of(placed.value, without), _MEAN: mean}
