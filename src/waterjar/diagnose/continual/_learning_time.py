"""Learning time: over how many epochs a task's learning is spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import curves_of, learned, own_curves, told
from waterjar.diagnose.continual._integrate import last_value, trapezoid
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def learning_time(curves: ArrayLike, epochs: ArrayLike | None = None) -> Result:
    """tau(i) = (integral of b)^2 / integral of b^2, b(t) = P_end - P(t) of task i while it is trained.

    Small: learned in a step. A curve that never moves (b = 0) has 0. Of a single evaluation there is no time to tell:
    NaN. Chance correction cancels, and so does the sign: accuracy and loss are treated alike. Of recorded runs,
    `floor_at_chance` does not cancel: what lies below chance then counts as chance here, too. A task that is trained
    again has a learning time for every visit.

    Parameters
    ----------
    curves : (..., train, eval, epoch).
    epochs : (epoch,) or (train, epoch); integrals are trapezoids over them.

    >>> learning_time([[[0.0, 1.0, 1.0, 1.0]]], [0, 1, 2, 3]).value  # b = 1, 0, 0, 0: (1/2)^2 / (1/2)
    array([0.5])
    """
    array, x = curves_of(curves, epochs, "any")
    own = own_curves(array)
    return told(spread(own, x), own, 2)


def spread(own: Floats, x: Floats) -> Floats:
    """(..., task, epoch) over (task, epoch) -> (..., task): the same of each task's own curve."""
    b = last_value(own)[..., None] - own
    area, length = trapezoid(b, x)
    squared = trapezoid(b**2, x)[0]
    still = squared == 0
    tau = np.where(still, 0.0, area**2 / np.where(still, 1.0, squared))
    return np.where(length > 0, tau, np.nan)


@metric(
    "learning_time",
    family="continual",
    long_name="learning time: epochs over which the learning of a task is spread",
    formula="(integral b)^2 / integral b^2, b(t) = P_end - P(t) while the task itself is trained",
    units="epoch",
    direction="lower",
    range=(0, np.inf),
    citation="defined here: participation ratio of what is still to be learned",
    version=2,
    needs=("performance/accuracy",),
    dims=("eval_task",),
    summary="learning_time_mean",
    matters=6,
    on_loss="same",
    loss_name="learning time: epochs over which the fall of a task's loss is spread",
)
def _learning_time(curves: TaskCurves) -> Result:
    if curves.settings.floor_at_chance and not curves.is_loss:
        return Result.of(spread(own_curves(curves.corrected), curves.epochs), learned(curves.corrected_reasons))
    return Result.of(spread(own_curves(curves.raw), curves.epochs), learned(curves.reasons))
