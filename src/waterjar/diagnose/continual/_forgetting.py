"""Forgetting: how far an earlier task fell from a reference, in the variants that papers and tools use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import learned, matrix_of, told, within
from waterjar.diagnose.continual._settings import REFERENCES
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import last_of_others, untrained
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result
from waterjar.errors import unknown_name


def forgetting(R: ArrayLike, reference: str = "max") -> Result:
    """(..., task): reference[i] - R[T, i] for every task before the last, NaN for the last. Lower is better.

    | reference | reference[i] | as in |
    |---|---|---|
    | max | highest R[l, i] over l < T | Chaudhry et al. 2018 |
    | learned | R[i, i] | avalanche's `functional.forgetting`, its stream forgetting; mean = -BWT |
    | max_or_last | highest R[l, i] over all l, the last too; never below 0 | Mammoth's `forgetting` |

    Evaluations of a task before its training (l < i) count where there are any; max_or_last takes 0 for those that are
    missing, as Mammoth does. For forgetting after task k pass R[..., :k+1, :k+1]; for the usual single number take the
    mean over all tasks but the last.

    Of recorded runs in which a task is trained again it is over tasks, each once, at the place of the task's last
    visit: `learned` is the end of that one, `max` the highest at the end of any visit but the last of all, the task's
    earlier visits too. The task of the last visit of all has none.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> R = [[0.75, 0.0, 0.0], [0.875, 0.5, 0.0], [0.5, 0.625, 1.0]]
    >>> forgetting(R).value, forgetting(R, "learned").value, forgetting(R, "max_or_last").value
    (array([ 0.375, -0.125,    nan]), array([ 0.25 , -0.125,    nan]), array([0.375, 0.   ,   nan]))
    """
    matrix = matrix_of(R)
    tasks = range(matrix.shape[-1])
    return told(fall(matrix, reference, tasks), matrix, 2, last_of_others(tasks))


def fall(matrix: Floats, reference: str, tasks: Sequence[int]) -> Floats:
    """(..., train, eval) -> (..., visit): the same of a matrix that is one, over the visits of these tasks."""
    if reference == "learned":
        best = learned(matrix)
    elif reference in REFERENCES:
        unmeasured = untrained(tasks) & np.isnan(matrix)
        filled = np.where(unmeasured, -np.inf if reference == "max" else 0.0, matrix)
        rows = filled[..., :-1, :] if reference == "max" else filled
        best = rows.max(-2, initial=-np.inf)
    else:
        raise unknown_name("forgetting: reference", reference, REFERENCES)
    return np.where(last_of_others(tasks), best - matrix[..., -1, :], np.nan)


@metric(
    "forgetting",
    family="continual",
    long_name="forgetting: fall of an earlier task from its reference (the highest so far by default) to the end",
    formula="max over l < T of R[l,i] - R[T,i] for i < T; other references by name",
    direction="lower",
    range=(-1, 1),
    citation="Chaudhry et al. 2018, Riemannian Walk for Incremental Learning",
    needs=("performance/accuracy",),
    dims=("eval_task",),
    summary="forgetting_mean",
    matters=3,
    on_loss="same",
    loss_name="forgetting: rise of an earlier task's loss from its reference (the lowest so far by default) to the end",
    loss_units="nat",
    made_of=("final_accuracies", "learned_accuracies"),
)
def _forgetting(curves: TaskCurves) -> Result:
    values = fall(curves.ends, curves.settings.forgetting_reference, curves.tasks)
    reasons = np.where(untrained(curves.tasks), 0, curves.end_reasons).max(-2)  # from a task's own training on
    return within(values, reasons, last_of_others(curves.tasks))
