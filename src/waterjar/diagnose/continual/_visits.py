"""Which visits are held against each other. Training is a sequence of visits, each of one task; most tasks have one.

`tasks` is the task of every visit, in the order of training. Matrices over (train, eval) have a row and a column for
every visit: the column of a visit is its task, and what was learned in the visit is followed there until the task is
visited again. Where none is, a visit is a task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.continual._arrays import Bools
from waterjar.diagnose.result import Floats


def followed(tasks: Sequence[int]) -> Bools:
    """(train, eval): `train` comes after `eval`, and the task of `eval` is not visited again up to then.

    Where no task is visited again, it is the triangle below the diagonal.

    >>> followed([0, 1, 0]).astype(int)  # task 0 is followed from visit 0 to 1, task 1 from visit 1 to 2
    array([[0, 0, 0],
           [1, 0, 0],
           [0, 1, 0]])
    """
    again, following = np.full(len(tasks), len(tasks)), dict[int, int]()
    for visit in reversed(range(len(tasks))):
        again[visit] = following.get(tasks[visit], len(tasks))
        following[tasks[visit]] = visit
    train, evaluated = np.indices((len(tasks), len(tasks)), sparse=True)
    found: Bools = (train > evaluated) & (train < again)
    return found


def untrained(tasks: Sequence[int]) -> Bools:
    """(train, eval): `train` comes before the first visit of the task of `eval`.

    Where no task is visited again, it is the triangle above the diagonal.
    """
    found: Bools = np.arange(len(tasks))[:, None] < _begins(tasks)
    return found


def before_first(tasks: Sequence[int]) -> Bools:
    """(train, eval): the same of first visits, so that every task stands there once.

    >>> before_first([0, 1, 0, 1]).astype(int)[0]
    array([0, 1, 0, 0])
    """
    return untrained(tasks) & first(tasks)


def first(tasks: Sequence[int]) -> Bools:
    """(visit,): whether it is the first of its task."""
    found: Bools = _begins(tasks) == np.arange(len(tasks))
    return found


def last(tasks: Sequence[int]) -> Bools:
    """(visit,): whether it is the last of its task."""
    return first(tasks[::-1])[::-1]


def first_of_others(tasks: Sequence[int]) -> Bools:
    """(visit,): the first visit of every task but the one that is trained at the end."""
    return first(tasks) & _of_others(tasks)


def last_of_others(tasks: Sequence[int]) -> Bools:
    """(visit,): the last visit of every task but the one that is trained at the end.

    >>> last_of_others([0, 1, 0, 2, 1]).astype(int)
    array([0, 0, 1, 1, 0])
    """
    return last(tasks) & _of_others(tasks)


def of_visits(values: Floats, chosen: Bools) -> Floats:
    """(..., visit): the chosen ones. The first so many are a view: how a sum rounds depends on how memory lies."""
    count = int(chosen.sum())
    return values[..., :count] if chosen[:count].all() else np.compress(chosen, values, axis=-1)


def _of_others(tasks: Sequence[int]) -> Bools:
    found: Bools = np.asarray(tasks) != tasks[-1]
    return found


def _begins(tasks: Sequence[int]) -> NDArray[np.intp]:
    """(visit,): the first visit of its task."""
    known: dict[int, int] = {}
    return np.array([known.setdefault(task, visit) for visit, task in enumerate(tasks)], np.intp)
