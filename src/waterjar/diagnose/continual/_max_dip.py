"""Largest dip: how far an earlier task strays while a later one is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import curves_of, learned, own_curves, told, within
from waterjar.diagnose.continual._integrate import last_value
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import followed
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def max_dip(curves: ArrayLike) -> Result:
    """Maximum over t of |P_end[i, i] - P[j, i, t]| at [train j, eval i], j after i; NaN elsewhere.

    P_end[i, i] is the last value of task i in its own training. A rise counts like a fall: it is the distance.
    Pairs of visits, where a task is trained again, are those of `remembering`.

    Parameters
    ----------
    curves : (..., train, eval, epoch), performance above chance.

    >>> max_dip([[[0.0, 1.0], [0.0, 0.0]], [[0.4, 0.7], [0.0, 1.0]]]).value
    array([[nan, nan],
           [0.6, nan]])
    """
    array, _ = curves_of(curves, scale="above_chance")
    return told(dips_from(last_value(own_curves(array)), array), array, 3, followed(range(array.shape[-3])))


def dips_from(ends: Floats, array: Floats) -> Floats:
    """The same from ends (..., task): a task's own curve need not be known but for its end."""
    dips = np.full(array.shape[:-1], np.nan)
    for j in range(1, array.shape[-3]):
        apart = np.abs(array[..., j, :j, :] - ends[..., :j, None])
        dips[..., j, :j] = np.fmax.reduce(apart, axis=-1)  # passes over evaluations that did not take place
    return dips


@metric(
    "max_dip",
    family="continual",
    long_name="largest dip: farthest that an earlier task strays from what was learned while a later one is trained",
    formula="max over t of |P_end[i,i] - P[j,i,t]|, j trained after i",
    direction="lower",
    range=(0, np.inf),
    citation="defined here: distance above chance",
    needs=("performance/accuracy",),
    dims=("train_task", "eval_task"),
    summary="max_dip_mean",
    on_loss="same",
    loss_name="largest dip: farthest that an earlier task's loss strays from what was learned while a later one trains",
    loss_units="nat",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _max_dip(curves: TaskCurves) -> Result:
    pairs = followed(curves.tasks)
    values = np.where(pairs, dips_from(learned(curves.corrected_ends), curves.corrected), np.nan)
    reasons = np.maximum(curves.corrected_reasons, learned(curves.corrected_end_reasons)[:, None, :])
    return within(values, reasons, pairs)
