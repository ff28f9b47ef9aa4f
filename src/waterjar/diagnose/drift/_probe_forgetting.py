"""Is old knowledge lost, or only unread? What a probe forgets, and what the network forgets beyond that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.drift.moment import Curves
from waterjar.diagnose.registry import metric


def forgotten(accuracy: ArrayLike, train_task: ArrayLike | Sequence[int], task: int) -> NDArray[np.float64]:
    """Accuracy at the last snapshot of the task itself - accuracy later (snapshot); NaN up to then, and without it.

    Parameters
    ----------
    accuracy : (snapshot) on the task, train_task : (snapshot), the task in training.

    >>> forgotten([0.5, 0.9, 0.6, 0.3], [0, 0, 1, 1], 0).round(9)
    array([nan, nan, 0.3, 0.6])
    """
    values, training = np.asarray(accuracy, np.float64), np.asarray(train_task)
    own = np.flatnonzero(training == task)
    found = np.full(values.shape, np.nan)
    if task >= 0 and len(own):
        found[own[-1] + 1 :] = values[own[-1]] - values[own[-1] + 1 :]
    return found


@metric(
    "probe_forgetting",
    family="drift",
    long_name="accuracy that a fresh linear probe has lost since the end of an eval set's own task",
    formula="probe accuracy at the last snapshot of the own task - probe accuracy now: knowledge that is lost",
    direction="lower",
    range=(-1, 1),
    citation="Davari et al. 2022, sec. 3",
    needs=("features", "probe_samples/label"),
    summary="probe_forgetting_final",
)
def _lost(curves: Curves) -> dict[str, NDArray[np.float64]]:
    return {name: forgotten(values, curves.train_task, curves.eval_task[name]) for name, values in curves.probe.items()}


@metric(
    "unread_forgetting",
    family="drift",
    long_name="forgetting of the network beyond that of a fresh probe: knowledge that is there, but unread",
    formula="(network's accuracy at the last snapshot of the own task - now) - probe_forgetting",
    range=(-2, 2),
    citation="Davari et al. 2022, sec. 3",
    needs=("features", "probe_samples/label", "performance/accuracy"),
    summary="unread_forgetting_final",
)
def _unread(curves: Curves) -> dict[str, NDArray[np.float64]]:
    lost = _lost(curves)
    return {
        name: forgotten(values, curves.train_task, curves.eval_task[name]) - lost[name]
        for name, values in curves.readout.items()
    }
