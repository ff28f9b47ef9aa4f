"""Is old knowledge lost, or only unread? What a probe forgets, and what the network forgets beyond that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.drift.inputs import Curves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import NOT_RECORDED, ONE_TASK, UNDEFINED, Result
from waterjar.run.visits import count_visits


def forgotten(
    accuracy: ArrayLike | Result,
    train_task: ArrayLike | Sequence[int],
    task: int,
    *,
    visit: ArrayLike | None = None,
    visited: Mapping[int, int] | None = None,
) -> Result:
    """Accuracy at the last snapshot of the task itself - accuracy later (snapshot); undefined up to then or without it.

    What was learned in a visit of the task is followed until the task is trained again, and then from the end of that
    visit on. Where the visit before has no snapshot it is `not_recorded`, whatever earlier ones have.

    Parameters
    ----------
    accuracy : (snapshot) on the task, train_task : (snapshot), the task in training.
    visit : (snapshot), the visit that each belongs to; if not given, every change of task begins one.
    visited : visit -> the task trained in it; if not given, there are no visits but those that have a snapshot.

    >>> forgotten([0.5, 0.9, 0.6, 0.3], [0, 0, 1, 1], 0).value.round(9)
    array([nan, nan, 0.3, 0.6])
    >>> forgotten([0.9, 0.6, 0.8, 0.7], [0, 1, 0, 1], 0).value.round(9)
    array([nan, 0.3, nan, 0.1])
    """
    told = accuracy if isinstance(accuracy, Result) else Result.of(accuracy, NOT_RECORDED)
    training = np.asarray(train_task)
    visits = count_visits(training) if visit is None else np.asarray(visit)
    trained = dict(zip(visits.tolist(), training.tolist(), strict=True)) if visited is None else visited
    nothing = ONE_TASK if set(trained.values()) == {task} and task >= 0 else UNDEFINED
    own = sorted(number for number, one in trained.items() if one == task)
    found, why = np.full(told.value.shape, np.nan), np.full(told.value.shape, nothing, np.uint8)
    for begin, again in zip(own, [*own[1:], math.inf], strict=True) if task >= 0 and task in training else ():
        ends, later = np.flatnonzero(visits == begin)[-1:], (visits > begin) & (visits < again)
        why[later] = NOT_RECORDED
        for end in ends:
            found[later] = told.value[end] - told.value[later]
            why[later] = np.where(told.reason[later] > 0, told.reason[later], told.reason[end])
    return Result.of(found, why)


def _by_set(curves: Curves, accuracy: Result) -> Result:
    """(snapshot, eval_set): what is forgotten of each eval set's own task."""
    nothing = Result.of(np.full(len(curves.train_task), np.nan), NOT_RECORDED)
    found = [
        nothing
        if task is None
        else forgotten(
            Result.of(accuracy.value[:, i], accuracy.reason[:, i]),
            curves.train_task,
            task,
            visit=curves.visit,
            visited=curves.visited,
        )
        for i, task in enumerate(curves.eval_task)
    ]
    return Result.of(np.stack([one.value for one in found], -1), np.stack([one.reason for one in found], -1))


@metric(
    "probe_forgetting",
    family="drift",
    long_name="accuracy that a fresh linear probe has lost since the end of an eval set's own task",
    formula="probe accuracy at the last snapshot of the own task - probe accuracy now: knowledge that is lost",
    direction="lower",
    range=(-1, 1),
    citation="Davari et al. 2022, sec. 3",
    needs=("features", "probe_samples/label"),
    dims=("eval_set",),
    summary="probe_forgetting_final",
    matters=3,
    made_of=("probe_accuracy",),
)
def _lost(curves: Curves) -> Result:
    return _by_set(curves, curves.probe)


@metric(
    "unread_forgetting",
    family="drift",
    long_name="forgetting of the network beyond that of a fresh probe: knowledge that is there, but unread",
    formula="(network's accuracy at the last snapshot of the own task - now) - probe_forgetting",
    range=(-2, 2),
    citation="Davari et al. 2022, sec. 3",
    needs=("features", "probe_samples/label", "performance/accuracy"),
    dims=("eval_set",),
    summary="unread_forgetting_final",
    made_of=("probe_forgetting", "final_accuracies", "learned_accuracies"),
)
def _unread(curves: Curves) -> Result:
    lost, network = _by_set(curves, curves.probe), _by_set(curves, curves.network)
    return Result.of(network.value - lost.value, np.where(lost.reason > 0, lost.reason, network.reason))
