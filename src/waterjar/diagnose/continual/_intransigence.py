"""Intransigence: what a task could have reached and did not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import learned, matrix_of, told
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import check_accuracies


def intransigence(R: ArrayLike, reference: ArrayLike) -> Result:
    """(..., task): a*[i] - R[i, i]. Lower is better; below 0 the past helped.

    Of recorded runs in which a task is trained again, i are visits; the expert of each is that of its task.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.
    reference : a* (..., task), raw accuracy of a network without that past. Chaudhry et al. train it on the data of all
        tasks up to i at once; recorded runs have the expert, trained on task i alone.

    >>> intransigence([[0.75, 0.25], [0.5, 0.5]], [0.75, 0.625]).value
    array([0.   , 0.125])
    """
    own, best = learned(matrix_of(R)), np.asarray(reference, np.float64)
    if not best.ndim or best.shape[-1] != own.shape[-1]:
        raise WaterjarError(f"reference has shape {best.shape}: expected (..., task) with {own.shape[-1]} tasks")
    check_accuracies(best, "reference")
    return told(best - own, best + own, 1)


@metric(
    "intransigence",
    family="continual",
    long_name="intransigence: final accuracy of a task's fresh expert minus that of the network with a past",
    formula="E_end[i] - R[i,i], E the expert of task i",
    direction="lower",
    range=(-1, 1),
    citation="Chaudhry et al. 2018, Riemannian Walk for Incremental Learning; their reference is trained jointly",
    needs=("performance/accuracy", "expert/accuracy"),
    dims=("eval_task",),
    summary="intransigence_mean",
    on_loss="same",
    loss_name="intransigence: final loss of the network with a past minus that of a task's fresh expert",
    loss_units="nat",
    made_of=("learned_accuracies",),
)
def _intransigence(curves: TaskCurves) -> Result:
    values = curves.sign * curves.expert.ends - learned(curves.ends)
    reasons = np.maximum(learned(curves.end_reasons), curves.expert.end_reasons)
    return Result.of(values, reasons)
