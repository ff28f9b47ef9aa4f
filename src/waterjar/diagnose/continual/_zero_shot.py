"""Zero-shot: what is known of a task before it is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import learned, matrix_of, told, within
from waterjar.diagnose.continual._ratio import EPS
from waterjar.diagnose.continual._remembering import ratios
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import before_first
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def zero_shot(R: ArrayLike, *, bounded: bool = True, eps: float = EPS) -> Result:
    """(R[j, i] - R[i, i]) / (|R[j, i]| + |R[i, i]|) at [train j, eval i], j before i; NaN elsewhere.

    -1: nothing is known of task i while j is trained; 0: it is solved already. Arguments as of `remembering`.

    Of recorded runs in which a task is trained again, j are the visits before the first one of task i, and R[i, i] is
    as learned in that one.

    >>> zero_shot([[0.8, 0.25], [0.2, 0.75]]).value
    array([[ nan, -0.5],
           [ nan,  nan]])
    """
    matrix = matrix_of(R, "above_chance")
    pairs = before_first(range(matrix.shape[-1]))
    return told(ratios(matrix, pairs, bounded=bounded, eps=eps), matrix, 2, pairs)


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
    pairs = before_first(curves.tasks)
    values = ratios(curves.integrated, pairs, bounded=curves.settings.bounded, eps=curves.settings.eps)
    reasons = np.maximum(curves.integrated_reasons, learned(curves.integrated_reasons)[:, None, :])
    return within(values, reasons, pairs)
