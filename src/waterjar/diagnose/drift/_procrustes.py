"""Procrustes distance: what remains between two representations after the best rotation."""

from __future__ import annotations

import math

from scipy import linalg

from waterjar.diagnose.drift.cloud import Points, same_samples
from waterjar.diagnose.drift.inputs import Comparison
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def procrustes_distance(a: Points, b: Points) -> Result:
    """min over orthogonal Q of ||A - B Q||_F, both centred and of Frobenius norm 1: sqrt(2 - 2 ||A^T B||_*).

    0 for the same cloud up to rotation, reflection, shift and scale; sqrt 2 where nothing can be aligned (Schoenemann
    1966; Williams et al. 2021, eq. 6; Ding et al. 2021 take its square). `scipy.spatial.procrustes` gives the disparity
    1 - ||A^T B||_*^2. Rounding stays below 1e-7; what it would make negative under the root is 0.

    Parameters
    ----------
    a : (sample, unit), b : (sample, other unit), row by row the same samples; the narrower one is padded with zeros.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> float(procrustes_distance(x, 3 * x[:, ::-1])) < 1e-7
    True
    """
    one, two = same_samples(a, b)
    if one.missing or two.missing:
        return one.missing or two.missing  # type: ignore[return-value]
    n = len(one.features)
    scale = math.sqrt(one.total) * math.sqrt(two.total)
    if scale == 0.0:
        return Result.missing("undefined", "a representation that does not vary over samples", n=n)
    wide = one.is_wide and two.is_wide
    cross = one.factor @ two.factor.T if wide else one.centred.T @ two.centred
    nuclear = float(linalg.svd(cross, compute_uv=False, check_finite=False).sum()) / scale
    return Result(math.sqrt(max(0.0, 2.0 - 2.0 * nuclear)), n=n)


@metric(
    "procrustes",
    family="drift",
    long_name="Procrustes distance to the first snapshot, the end of the task before, the one before",
    formula="sqrt(2 - 2 ||A^T B||_*), features centred and of Frobenius norm 1",
    range=(0, math.sqrt(2)),
    citation="Schoenemann 1966; Williams et al. 2021, eq. 6",
    needs=("features",),
    summary="procrustes_final",
    made_of=("F . F_other",),
)
def _measure(pair: Comparison) -> Result:
    return procrustes_distance(pair.now, pair.other)
