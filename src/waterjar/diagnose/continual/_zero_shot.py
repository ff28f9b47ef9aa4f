"""Zero-shot: what is known of a task before it is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import earlier, learned, matrix_of, told, within
from waterjar.diagnose.continual._ratio import EPS, contrast
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def zero_shot(R: ArrayLike, *, bounded: bool = True, eps: float = EPS) -> Result:
    """(R[j, i] - R[i, i]) / (|R[j, i]| + |R[i, i]|) at [train j, eval i], j before i; NaN elsewhere.

    -1: nothing is known of task i while j is trained; 0: it is solved already. Arguments as of `remembering`.

    >>> zero_shot([[0.8, 0.25], [0.2, 0.75]]).value
    array([[ nan, -0.5],
           [ nan,  nan]])
    """
    matrix = matrix_of(R, "above_chance")
    return told(ratios(matrix, bounded=bounded, eps=eps), matrix, 2, earlier(matrix.shape[-1]))


def ratios(matrix: Floats, *, bounded: bool, eps: float) -> Floats:
    """The same of a matrix that is one."""
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
    dims=("train_task", "eval_task"),
    summary="zero_shot_mean",
    on_loss="flipped",
    loss_name="zero-shot: loss on a task before it is trained, relative to when it is learned",
    made_of=("untrained_accuracies", "learned_accuracies"),
)
def _zero_shot(curves: TaskCurves) -> Result:
    values = ratios(curves.integrated, bounded=curves.settings.bounded, eps=curves.settings.eps)
    reasons = np.maximum(curves.integrated_reasons, learned(curves.integrated_reasons)[:, None, :])
    return within(values, reasons, earlier(len(curves.tasks)))
