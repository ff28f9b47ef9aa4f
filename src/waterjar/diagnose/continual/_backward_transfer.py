"""Backward transfer (BWT): what later tasks did to earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import learned, matrix_of, mean_or_nan, told
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import last, last_of_others, of_visits
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def backward_transfer(R: ArrayLike) -> Result:
    """BWT = mean over i < T of R[T, i] - R[i, i]. NaN of a single task.

    Also Mammoth's `backward_transfer`, and minus the mean of avalanche's forgetting.

    Of recorded runs in which a task is trained again it is over tasks, each once: R[i, i] is the end of the task's last
    visit, and the task of the last visit of all takes no part.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> float(backward_transfer([[0.75, 0.25], [0.5, 1.0]]))
    -0.25
    """
    matrix = matrix_of(R)
    return told(change(matrix, range(matrix.shape[-1])), matrix, 2)


def change(matrix: Floats, tasks: Sequence[int]) -> Floats:
    """(..., train, eval) -> (...): the same of a matrix that is one, over the visits of these tasks."""
    return mean_or_nan(of_visits(matrix[..., -1, :] - learned(matrix), last_of_others(tasks)))


@metric(
    "backward_transfer",
    family="continual",
    long_name="backward transfer: mean change of earlier tasks from when they were learned to the end",
    formula="mean over i < T of R[T,i] - R[i,i]",
    direction="higher",
    range=(-1, 1),
    citation="Lopez-Paz & Ranzato 2017, Gradient Episodic Memory for Continual Learning, eq. 3",
    needs=("performance/accuracy",),
    symbol="BWT",
    on_loss="same",
    loss_name="backward transfer: mean fall of the loss on earlier tasks from when they were learned to the end",
    loss_units="nat",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _backward_transfer(curves: TaskCurves) -> Result:
    reasons = np.maximum(curves.end_reasons[:, -1], learned(curves.end_reasons))[:, last(curves.tasks)].max(-1)
    return curves.over_all(change(curves.ends, curves.tasks), reasons)
