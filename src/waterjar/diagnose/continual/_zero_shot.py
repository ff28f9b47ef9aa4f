"""Zero-shot: what is known of a task before it is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Floats, earlier, learned, matrix_of
from waterjar.diagnose.continual._measured import Measured
from waterjar.diagnose.continual._ratio import EPS, contrast
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric


def zero_shot(R: ArrayLike, *, bounded: bool = True, eps: float = EPS) -> Floats:
    """(R[j, i] - R[i, i]) / (|R[j, i]| + |R[i, i]|) at [train j, eval i], j before i; NaN elsewhere.

    -1: nothing is known of task i while j is trained; 0: it is solved already. Arguments as of `remembering`.

    >>> zero_shot([[0.8, 0.25], [0.2, 0.75]])
    array([[ nan, -0.5],
           [ nan,  nan]])
    """
    matrix = matrix_of(R)
    ratio = contrast(matrix, learned(matrix)[..., None, :], bounded=bounded, eps=eps)
    return np.where(earlier(matrix.shape[-1]), ratio, np.nan)


@metric(
    "zero_shot",
    family="continual",
    long_name="zero-shot: performance on a task before it is trained, relative to when it is learned",
    formula="(R[j,i] - R[i,i]) / (|R[j,i]| + |R[i,i]|), j trained before i; R above chance",
    direction="higher",
    range=(-1, 1),
    citation="defined here: contrast of performance above chance",
    needs=("performance/accuracy",),
    summary="zero_shot_mean",
)
def _zero_shot(curves: TaskCurves) -> Measured:
    values = zero_shot(curves.integrated, bounded=curves.settings.bounded, eps=curves.settings.eps)
    reasons = np.maximum(curves.integrated_reasons, learned(curves.integrated_reasons)[:, None, :])
    pairs = earlier(len(curves.tasks))
    return Measured(values, ("train_task", "eval_task"), reasons, pairs, loss_flips=True)
