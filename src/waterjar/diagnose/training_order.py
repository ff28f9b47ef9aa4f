"""The order in which a run trained its tasks: visit by visit, for a task may be trained again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from waterjar.run.join import UnlikeError
from waterjar.run.schema import JOINT
from waterjar.run.visits import VISIT, stretches

MOST_NAMED = 12
"""Visits up to which all are named in a sentence."""


class Visit(NamedTuple):
    """A stretch of training on one task."""

    task: int
    """Its place among the tasks as declared."""
    rows: NDArray[np.intp]
    """Where its steps stand."""


def stretches_of(steps: xr.Dataset) -> list[NDArray[np.intp]]:
    """The steps of every stretch of training in a group, on one task or on all at once."""
    return stretches(steps["train_task_index"].values, steps[VISIT].values if VISIT in steps else None)


def training_visits(steps: xr.Dataset) -> tuple[Visit, ...]:
    """The visits of a group in the order of training, whatever order was declared; joint training is none of them."""
    index = steps["train_task_index"].values
    return tuple(Visit(int(index[rows[0]]), rows) for rows in stretches_of(steps) if index[rows[0]] >= 0)


def visit_labels(visited: Sequence[int], tasks: int) -> list[int]:
    """A number for every visit, by its task and how often that was visited before, the same in runs of any order.

    The first visit of a task has the task's own number; each further one adds the number of `tasks`.

    >>> visit_labels([0, 1, 0, 0], 2), visit_labels([1, 0], 2)
    ([0, 1, 2, 4], [1, 0])
    """
    seen: Counter[int] = Counter()
    found = []
    for task in visited:
        found.append(task + tasks * seen[task])
        seen[task] += 1
    return found


_FURTHER = re.compile(r" \(\d+(st|nd|rd|th) time\)'*\Z")
"""How the name of a further visit ends. Visits are counted over the run, from 0; these words count those of a task."""


def visit_name(task: str, time: int) -> str:
    """What a visit of a task is called, of which it is the first, second ... `time`.

    >>> visit_name("x", 1), visit_name("x", 2), visit_name("x", 13), visit_name("x", 21)
    ('x', 'x (2nd time)', 'x (13th time)', 'x (21st time)')
    """
    ending = "th" if time % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(time % 10, "th")
    return task if time == 1 else f"{task} ({time}{ending} time)"


def visit_names(tasks: Sequence[str], visits: ArrayLike | None = None) -> list[str]:
    """What the visit of every step is called: its task, and from the second one on how often it was visited by then.

    Joint training is called so whenever it comes. Without `visits` every change of task begins one.

    >>> visit_names(["x", "x", "y", "x"])
    ['x', 'x', 'y', 'x (2nd time)']
    """
    found, seen, taken = list(tasks), Counter[str](), set(tasks)
    for rows in stretches(np.asarray(tasks, object), visits):
        task = tasks[rows[0]]
        seen[task] += 1
        if task == JOINT or seen[task] == 1:
            continue
        name = visit_name(task, seen[task])
        while name in taken:  # a task is called so
            name += "'"
        taken.add(name)
        for row in rows:
            found[row] = name
    return found


def is_visit_of(name: str, task: str) -> bool:
    """Whether a name of `visit_names` is that of a visit of a task.

    >>> is_visit_of("x (2nd time)", "x"), is_visit_of("xx", "x")
    (True, False)
    """
    return name == task or (name.startswith(task) and _FURTHER.fullmatch(name, len(task)) is not None)


def is_further_visit(name: str) -> bool:
    """Whether a name of `visit_names` is that of a visit of a task that was trained before.

    >>> is_further_visit("x (2nd time)"), is_further_visit("x")
    (True, False)
    """
    return _FURTHER.search(name) is not None


def visit_names_of(steps: Any) -> list[str]:
    """The same of a Dataset with the task, and where it was recorded the visit, of every step or snapshot.

    Seeds of one cell that were trained otherwise have no course in common: they are an error.
    """
    if "repeat" in steps["train_task"].dims:
        raise UnlikeError("seeds of one cell trained different tasks at the same snapshot: they have no common course")
    tasks = steps["train_task"].values.astype(str).tolist()
    visits = steps[VISIT].values.astype(float) if VISIT in steps.coords else None
    return visit_names(tasks, None if visits is None or np.isnan(visits).any() else visits)


def order_note(trained: Sequence[int], names: Sequence[str]) -> str:
    """What is to be said where tasks were trained in another order than declared; else nothing.

    >>> order_note([1, 0], ["a", "b"]), order_note([0, 2, 0], ["a", "b", "c"])
    ('trained in the order b, a, declared as a, b: the recorded order counts', '')
    """
    first = list(dict.fromkeys(trained))
    if first == sorted(first):
        return ""
    recorded = ", ".join(names[task] for task in first)
    return f"trained in the order {recorded}, declared as {', '.join(names)}: the recorded order counts"


def visits_note(trained: Sequence[int], names: Sequence[str]) -> str:
    """What is to be said where a task was trained again; else nothing.

    >>> visits_note([0, 1, 0], ["a", "b"]), visits_note([0, 1], ["a", "b"])
    ('trained again, one row per visit: a, b, a', '')
    """
    if len(set(trained)) == len(trained):
        return ""
    more = f" and {len(trained) - MOST_NAMED} more" if len(trained) > MOST_NAMED else ""
    return f"trained again, one row per visit: {', '.join(names[task] for task in trained[:MOST_NAMED])}{more}"
