"""Average anytime accuracy (AAA): over the tasks seen so far, at every moment of training."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Floats, curves_of
from waterjar.diagnose.continual._integrate import integrate
from waterjar.diagnose.continual._measured import Measured
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric


def average_anytime_accuracy(curves: ArrayLike, epochs: ArrayLike | None = None) -> Floats:
    """AAA = mean over trained tasks i of the mean over logged epochs t > 0 of the mean over j <= i of A[i, j, t].

    Tasks count alike, however often they were logged. Logged at the ends of tasks only, it is the average of ACC after
    each task ("average incremental accuracy"): pass R[..., None].

    Parameters
    ----------
    curves : (..., train, eval, epoch), raw accuracy.
    epochs : (epoch,) or (train, epoch). Epoch 0 stands before the task's training and is left out.

    >>> average_anytime_accuracy([[[0.5, 0.75], [0.0, 0.0]], [[0.5, 0.25], [0.25, 0.5]]])  # (5/8 + 3/8) / 2
    np.float64(0.5)
    """
    array, x = curves_of(curves, epochs)
    tasks = array.shape[-3]
    seen = np.empty((*array.shape[:-3], tasks))
    for i in range(tasks):
        training = x[i] > 0
        if not training.any():
            seen[..., i] = np.nan
            continue
        part = array[..., i, : i + 1, :]
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
)
def _average_anytime_accuracy(curves: TaskCurves) -> Measured:
    if curves.is_loss:
        return curves.for_accuracy_only
    values = average_anytime_accuracy(curves.raw, curves.epochs)
    return Measured(values, (), np.tril(curves.reasons).max((-2, -1)))
