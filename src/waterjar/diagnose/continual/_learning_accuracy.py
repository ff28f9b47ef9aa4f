"""Learning accuracy (LA): how well each task is learned when it is its turn."""

from __future__ import annotations

from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import Floats, learned, matrix_of
from waterjar.diagnose.continual._measured import Measured
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric


def learning_accuracy(R: ArrayLike) -> Floats:
    """LA = mean over i of R[i, i].

    Parameters
    ----------
    R : (..., train, eval), raw accuracy at the end of each task.

    >>> learning_accuracy([[0.75, 0.25], [0.5, 1.0]])
    np.float64(0.875)
    """
    found: Floats = learned(matrix_of(R)).mean(-1)
    return found


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
)
def _learning_accuracy(curves: TaskCurves) -> Measured:
    if curves.is_loss:
        return curves.for_accuracy_only
    return Measured(learning_accuracy(curves.ends), (), learned(curves.end_reasons).max(-1))
