"""Remembering: what is left of a task while a later one is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Bools, learned, matrix_of, told, within
from waterjar.diagnose.continual._ratio import EPS, contrast
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import followed
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def remembering(R: ArrayLike, *, bounded: bool = True, eps: float = EPS) -> Result:
    """(R[j, i] - R[i, i]) / (|R[j, i]| + |R[i, i]|) at [train j, eval i], j after i; NaN elsewhere.

    Of recorded runs in which a task is trained again, i and j are visits: what was learned in visit i is followed to
    the visits j of other tasks up to the next visit of its own. The mean is over all such pairs.

    Parameters
    ----------
    R : (..., train, eval), performance above chance (see `above_chance`).
    bounded : False takes R[j, i] + R[i, i] as denominator, which leaves [-1, 1] below chance.
    eps : where the denominator is within eps of 0, both are at chance and the value is NaN.

    >>> remembering([[0.8, 0.0], [0.2, 0.5]]).value
    array([[ nan,  nan],
           [-0.6,  nan]])
    """
    matrix = matrix_of(R, "above_chance")
    pairs = followed(range(matrix.shape[-1]))
    return told(ratios(matrix, pairs, bounded=bounded, eps=eps), matrix, 2, pairs)


def ratios(matrix: Floats, pairs: Bools, *, bounded: bool, eps: float) -> Floats:
    """The same of a matrix that is one, at chosen pairs (train, eval)."""
    ratio = contrast(matrix, learned(matrix)[..., None, :], bounded=bounded, eps=eps)
    return np.where(pairs, ratio, np.nan)


@metric(
    "remembering",
    family="continual",
    long_name="remembering: performance on an earlier task while a later one is trained, relative to as learned",
    formula="(R[j,i] - R[i,i]) / (|R[j,i]| + |R[i,i]|), j trained after i; R above chance",
    direction="higher",
    range=(-1, 1),
    citation="defined here: contrast of performance above chance",
    needs=("performance/accuracy",),
    dims=("train_task", "eval_task"),
    summary="remembering_mean",
    matters=4,
    on_loss="flipped",
    loss_name="remembering: loss on an earlier task while a later one is trained, relative to as learned",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _remembering(curves: TaskCurves) -> Result:
    pairs = followed(curves.tasks)
    values = ratios(curves.integrated, pairs, bounded=curves.settings.bounded, eps=curves.settings.eps)
    reasons = np.maximum(curves.integrated_reasons, learned(curves.integrated_reasons)[:, None, :])
    return within(values, reasons, pairs)
