"""Average accuracy (ACC): over all tasks, when the last one has been trained."""

from __future__ import annotations

from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import matrix_of, mean_or_nan, told
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def average_accuracy(R: ArrayLike) -> Result:
    """ACC = mean over i of R[T, i], T the last task trained. For ACC after task k pass R[..., :k+1, :k+1].

    Of recorded runs it is over every task that has an eval set, at the end of the run: a task that the run never
    trained on its own counts as it was evaluated, so that runs of one task, of all in turn and of all at once compare.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> float(average_accuracy([[0.75, 0.25], [0.5, 1.0]]))
    0.75
    """
    matrix = matrix_of(R)
    return told(mean_or_nan(matrix[..., -1, :]), matrix, 2)


@metric(
    "average_accuracy",
    family="continual",
    long_name="average accuracy over all tasks after the last one",
    formula="mean over i of R[T,i]",
    direction="higher",
    range=(0, 1),
    citation="Lopez-Paz & Ranzato 2017, Gradient Episodic Memory for Continual Learning, eq. 2",
    needs=("performance/accuracy",),
    symbol="ACC",
    matters=1,
    made_of=("final_accuracies", "learned_accuracies"),  # the last task's is one of both
)
def _average_accuracy(curves: TaskCurves) -> Result:
    return Result.of(mean_or_nan(curves.final), curves.final_reasons.max(-1))
