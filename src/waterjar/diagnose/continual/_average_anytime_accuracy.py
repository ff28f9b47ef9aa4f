"""Average anytime accuracy (AAA): over the tasks seen so far, at every moment of training."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Bools, curves_of, told
from waterjar.diagnose.continual._integrate import integrate
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def average_anytime_accuracy(curves: ArrayLike, epochs: ArrayLike | None = None) -> Result:
    """AAA = mean over trained tasks i of the mean over logged epochs t > 0 of the mean over j <= i of A[i, j, t].

    Tasks count alike, however often they were logged. Logged at the ends of tasks only, it is the average of ACC after
    each task ("average incremental accuracy"): pass R[..., None].

    Of recorded runs, a task that the run never trains on its own counts at every moment, as it does in average
    accuracy; so does every task of joint training, which has one phase. Where a task is trained again, phases
    are visits, which count alike, and a task counts from its first visit on.

    Parameters
    ----------
    curves : (..., train, eval, epoch), raw accuracy.
    epochs : (epoch,) or (train, epoch). Epoch 0 stands before the task's training and is left out.

    >>> float(average_anytime_accuracy([[[0.5, 0.75], [0.0, 0.0]], [[0.5, 0.25], [0.25, 0.5]]]))  # (5/8 + 3/8) / 2
    0.5
    """
    array, x = curves_of(curves, epochs)
    return told(anytime(array, x, np.tri(array.shape[-3], dtype=np.bool_)), array, 3)


def anytime(curves: Floats, epochs: Floats, counted: Bools) -> Floats:
    """The same of any phases (..., phase, task, epoch), over the tasks that are `counted` (phase, task) in each."""
    phases = curves.shape[-3]
    seen = np.full((*curves.shape[:-3], phases), np.nan)
    for i in range(phases):
        training, those = epochs[i] > 0, np.flatnonzero(counted[i])
        if not training.any() or not len(those):
            continue
        first = len(those) == those[-1] + 1  # as a rule; then nothing need be copied
        part = curves[..., i, : len(those), :] if first else curves[..., i, those, :]
        seen[..., i] = integrate(part if training.all() else part[..., training], how="mean").mean(-1)
    found: Floats = seen.mean(-1)
    return found


@metric(
    "average_anytime_accuracy",
    family="continual",
    long_name="average anytime accuracy over the tasks seen so far, all through training",
    formula="mean over i, over logged epochs t > 0, over j <= i of A[i,j,t]",
    direction="higher",
    range=(0, 1),
    citation="Caccia et al. 2022, New Insights on Reducing Abrupt Representation Change in Online Continual Learning",
    needs=("performance/accuracy",),
    symbol="AAA",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _average_anytime_accuracy(curves: TaskCurves) -> Result:
    values = anytime(curves.overall.curves, curves.overall.epochs, curves.counted)
    reasons = np.where(curves.counted, curves.overall.reasons, 0).max((-2, -1))
    return Result.of(values, reasons)
