"""Average accuracy (ACC): over all tasks, when the last one has been trained."""

from __future__ import annotations

from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Floats, matrix_of, mean_or_nan
from waterjar.diagnose.continual._measured import Measured
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric


def average_accuracy(R: ArrayLike) -> Floats:
    """ACC = mean over i of R[T, i], T the last task trained. For ACC after task k pass R[..., :k+1, :k+1].

    Of recorded runs it is over every task that has an eval set, at the end of the run: a task that the run never
    trained on its own counts as it was evaluated, so that runs of one task, of all in turn and of all at once compare.

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> average_accuracy([[0.75, 0.25], [0.5, 1.0]])
    np.float64(0.75)
    """
    return mean_or_nan(matrix_of(R)[..., -1, :])


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
)
def _average_accuracy(curves: TaskCurves) -> Measured:
    if curves.is_loss:
        return curves.for_accuracy_only
    return Measured(mean_or_nan(curves.final), (), curves.final_reasons.max(-1), over_all_tasks=True)
