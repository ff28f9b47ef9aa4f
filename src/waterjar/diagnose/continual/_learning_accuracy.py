"""Learning accuracy (LA): how well each task is learned when it is its turn."""

from __future__ import annotations

import xarray as xr
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import learned, matrix_of, told
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def learning_accuracy(R: ArrayLike) -> Result:
    """LA = mean over i of R[i, i]. Of recorded runs in which a task is trained again, i are visits, which count alike.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> float(learning_accuracy([[0.75, 0.25], [0.5, 1.0]]))
    0.875
    """
    own = learned(matrix_of(R))
    return told(own.mean(-1), own, 1)


def _of_one_task(result: xr.Dataset) -> str:
    """ACC, where there is one task, and it is trained once: both are its accuracy at the end."""
    once = result.sizes["eval_task"] == 1 and bool((result["n_tasks"] == 1).all())
    return "average_accuracy" if once else ""


@metric(
    "learning_accuracy",
    family="continual",
    long_name="learning accuracy: mean accuracy of each task at the end of its own training",
    formula="mean over i of R[i,i]",
    direction="higher",
    range=(0, 1),
    citation="Riemer et al. 2019, Learning to Learn without Forgetting (ICLR)",
    needs=("performance/accuracy",),
    symbol="LA",
    matters=2,
    made_of=("learned_accuracies",),
    same_as=_of_one_task,
)
def _learning_accuracy(curves: TaskCurves) -> Result:
    return curves.over_all(learned(curves.ends).mean(-1), learned(curves.end_reasons).max(-1))
