"""Forward transfer as in GEM (FWT): what earlier tasks gave to later ones before these were trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import matrix_of, mean_or_nan, told
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import first, of_visits
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import check_accuracies


def forward_transfer_gem(R: ArrayLike, initial: ArrayLike) -> Result:
    """FWT = mean over i > 1 of R[i-1, i] - b[i]. NaN of a single task. Also Mammoth's `forward_transfer`.

    Of recorded runs in which a task is trained again it is over tasks, each just before its first visit.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.
    initial : b (..., task), raw accuracy of the network before any training.

    >>> float(forward_transfer_gem([[0.75, 0.25], [0.5, 1.0]], [0.5, 0.125]))
    0.125
    """
    matrix, start = matrix_of(R), np.asarray(initial, np.float64)
    if not start.ndim or start.shape[-1] != matrix.shape[-1]:
        raise WaterjarError(f"initial has shape {start.shape}: expected (..., task) with {matrix.shape[-1]} tasks")
    check_accuracies(start, "initial")
    return told(gain(matrix, start, range(start.shape[-1])), matrix + start[..., None, :], 2)


def gain(matrix: Floats, start: Floats, tasks: Sequence[int]) -> Floats:
    """(..., train, eval) and (..., visit) -> (...): the same of arrays that fit, over the visits of these tasks."""
    before = np.diagonal(matrix, offset=1, axis1=-2, axis2=-1)
    return mean_or_nan(of_visits(before - start[..., 1:], first(tasks)[1:]))


@metric(
    "forward_transfer_gem",
    family="continual",
    long_name="forward transfer of GEM: accuracy on a task just before its training, over that before any training",
    formula="mean over i > 1 of R[i-1,i] - b[i], b at step 0",
    direction="higher",
    range=(-1, 1),
    citation="Lopez-Paz & Ranzato 2017, Gradient Episodic Memory for Continual Learning, eq. 4",
    needs=("performance/accuracy",),
    symbol="FWT",
    on_loss="same",
    loss_name="forward transfer of GEM: loss on a task before any training, over that just before its training",
    loss_units="nat",
    made_of=("untrained_accuracies",),
)
def _forward_transfer_gem(curves: TaskCurves) -> Result:
    before = np.diagonal(curves.end_reasons, offset=1, axis1=-2, axis2=-1)
    reasons = np.maximum(before, curves.initial_reasons[:, 1:])[:, first(curves.tasks)[1:]].max(-1, initial=0)
    return curves.over_all(gain(curves.ends, curves.sign * curves.initial, curves.tasks), reasons)
