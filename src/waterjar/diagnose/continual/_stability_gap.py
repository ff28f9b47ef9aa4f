"""Stability gap (min-ACC, WC-ACC): the worst moment of earlier tasks, which the ends of tasks do not show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import curves_of, learned, mean_or_nan, told
from waterjar.diagnose.continual._integrate import last_value
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import first_of_others, of_visits
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Codes, Floats, Result

_CITATION = "De Lange, van de Ven & Tuytelaars 2023, Continual Evaluation for Lifelong Learning"


def min_accuracy(curves: ArrayLike, epochs: ArrayLike | None = None) -> Result:
    """min-ACC = mean over i < T of the lowest A[j, i, t] over all tasks j after i and epochs t > 0.

    NaN of a single task. The finer the logging, the deeper the dips it sees: compare only what was logged alike.

    Of recorded runs in which a task is trained again it is over tasks, each from the end of its first visit on, its own
    later visits too; the task of the last visit takes no part.

    Parameters
    ----------
    curves : (..., train, eval, epoch), raw accuracy.
    epochs : (epoch,) or (train, epoch). Epoch 0 stands before the task's training and is left out.

    >>> float(min_accuracy([[[0.5, 1.0], [0.0, 0.0]], [[0.25, 0.75], [0.5, 1.0]]]))
    0.25
    """
    array, x = curves_of(curves, epochs)
    return told(lowest_of(array, x, range(array.shape[-3])), array, 3)


def lowest_of(array: Floats, x: Floats, tasks: Sequence[int]) -> Floats:
    """(..., train, eval, epoch) over (train, epoch) -> (...): the same of curves that are some, of visits."""
    lowest = np.full((*array.shape[:-3], array.shape[-3] - 1), np.inf)
    for j in range(1, array.shape[-3]):
        training = x[j] > 0
        part = array[..., j, :j, :] if training.all() else array[..., j, :j, training]
        if not training.all():  # a mask moves its axis to the front
            part = np.moveaxis(part, 0, -1)
        found = np.fmin.reduce(part, axis=-1, initial=np.nan)  # within a task, what was not evaluated is passed over
        lowest[..., :j] = np.minimum(lowest[..., :j], found)  # a task without any evaluation makes it unknown
    return mean_or_nan(of_visits(lowest, first_of_others(tasks)[:-1]))


def worst_case_accuracy(curves: ArrayLike, epochs: ArrayLike | None = None) -> Result:
    """WC-ACC = A_end[T, T] / T + (1 - 1/T) min-ACC: the last task as learned, all others at their worst.

    Of recorded runs T is the number of tasks, and A_end[T, T] the end of the last visit.

    >>> float(worst_case_accuracy([[[0.5, 1.0], [0.0, 0.0]], [[0.25, 0.75], [0.5, 1.0]]]))  # 1/2 + 1/2 · 1/4
    0.625
    """
    array, x = curves_of(curves, epochs)
    return told(with_last(last_value(array[..., -1, -1, :]), array, x, range(array.shape[-3])), array, 3)


def with_last(last: Floats, curves: Floats, epochs: Floats, tasks: Sequence[int]) -> Floats:
    """The same from A_end[T, T] (...): the last task's own curve need not be known but for its end."""
    count = len(set(tasks))
    return last if count == 1 else last / count + (1 - 1 / count) * lowest_of(curves, epochs, tasks)


@metric(
    "min_accuracy",
    family="continual",
    long_name="minimum accuracy: mean over earlier tasks of their lowest accuracy after they were learned",
    formula="mean over i < T of min over j > i, t > 0 of A[j,i,t]",
    direction="higher",
    range=(0, 1),
    citation=_CITATION,
    needs=("performance/accuracy",),
    symbol="min-ACC",
    made_of=("final_accuracies",),
)
def _min_accuracy(curves: TaskCurves) -> Result:
    return curves.over_all(lowest_of(curves.raw, curves.epochs, curves.tasks), _why_unknown(curves))


def _why_unknown(curves: TaskCurves) -> Codes:
    """(repeat,): why the lowest accuracies since tasks were learned are not all known."""
    found: Codes = np.tril(curves.reasons, -1)[..., first_of_others(curves.tasks)].max((-2, -1), initial=0)
    return found


@metric(
    "worst_case_accuracy",
    family="continual",
    long_name="worst-case accuracy: the last task as learned, earlier ones at their lowest since",
    formula="A_end[T,T] / T + (1 - 1/T) min-ACC",
    direction="higher",
    range=(0, 1),
    citation=_CITATION,
    needs=("performance/accuracy",),
    symbol="WC-ACC",
    made_of=("min_accuracy", "learned_accuracies"),
)
def _worst_case_accuracy(curves: TaskCurves) -> Result:
    reasons = np.maximum(_why_unknown(curves), learned(curves.end_reasons)[:, -1])
    return curves.over_all(with_last(learned(curves.ends)[:, -1], curves.raw, curves.epochs, curves.tasks), reasons)
