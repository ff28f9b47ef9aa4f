"""Forgetting rate: how fast an earlier task is lost while a later one is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import curves_of, told, within
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import followed
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result


def forgetting_rate(curves: ArrayLike, epochs: ArrayLike | None = None) -> Result:
    """Cov(t, P) / Var(t) of task i while j is trained, at [train j, eval i], j after i; NaN elsewhere.

    The slope of the least-squares line through the logged epochs. NaN with fewer than two evaluations.
    Pairs of visits, where a task is trained again, are those of `remembering`.

    Parameters
    ----------
    curves : (..., train, eval, epoch), performance above chance.
    epochs : (epoch,) or (train, epoch).

    >>> forgetting_rate([[[0.0, 1.0], [0.0, 0.0]], [[0.9, 0.7], [0.0, 1.0]]], [0, 1]).value.round(3)
    array([[ nan,  nan],
           [-0.2,  nan]])
    """
    array, x = curves_of(curves, epochs, "above_chance")
    return told(slopes(array, x), array, 3, followed(range(array.shape[-3])))


def slopes(array: Floats, x: Floats) -> Floats:
    """(..., train, eval, epoch) -> (..., train, eval): the same of curves over epochs (train, epoch)."""
    rates = np.full(array.shape[:-1], np.nan)
    for j in range(1, array.shape[-3]):  # task by task: what later tasks leave out need not be computed
        rates[..., j, :j] = slope(array[..., j, :j, :], x[j])
    return rates


def slope(values: Floats, t: Floats) -> Floats:
    """(..., epoch) over t (epoch,) -> (...): the least-squares slope through the values that are there."""
    there = ~np.isnan(values)
    if there.all():
        centred = t - t.mean()
        spread = np.asarray((centred**2).sum())
        above = np.einsum("...e,e->...", values, centred)
    else:
        count = np.maximum(there.sum(-1, keepdims=True), 1)
        times = np.where(there, t, 0.0)
        offsets = np.where(there, times - times.sum(-1, keepdims=True) / count, 0.0)
        spread = (offsets**2).sum(-1)
        above = (offsets * np.where(there, values, 0.0)).sum(-1)
    flat = spread == 0
    found: Floats = np.where(flat, np.nan, above / np.where(flat, 1.0, spread))
    return found


@metric(
    "forgetting_rate",
    family="continual",
    long_name="forgetting rate: slope of performance on an earlier task while a later one is trained",
    formula="Cov(t, P[j,i,t]) / Var(t), j trained after i; < 0 is active forgetting",
    units="1/epoch",
    direction="higher",
    citation="defined here: least-squares slope over logged epochs",
    needs=("performance/accuracy",),
    dims=("train_task", "eval_task"),
    summary="forgetting_rate_mean",
    unlike="a slope, not an amount as forgetting is: of accuracies, below 0 a task is being forgotten",
    on_loss="flipped",
    loss_name="forgetting rate: slope of the loss on an earlier task while a later one is trained",
    loss_units="nat/epoch",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _forgetting_rate(curves: TaskCurves) -> Result:
    pairs = followed(curves.tasks)
    values = np.where(pairs, slopes(curves.corrected, curves.epochs), np.nan)
    return within(values, curves.corrected_reasons, pairs)
