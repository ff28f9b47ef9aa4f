"""Visits: stretches of training on one task, or on all at once, counted from 0 over the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.run.reader import Arrays, Run

VISIT = "visit"


def count_visits(tasks: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
    """The visit of every step where none was recorded (schema 1): another task begins the next.

    >>> count_visits(["x", "x", "y", "x"])
    array([0, 0, 1, 2])
    """
    return np.cumsum([place > 0 and tasks[place] != tasks[place - 1] for place in range(len(tasks))], dtype=np.int64)


def stretches(tasks: ArrayLike, visits: ArrayLike | None = None) -> list[NDArray[np.intp]]:
    """The steps of every visit, in their order; without `visits` every change of task begins one.

    >>> [rows.tolist() for rows in stretches([0, 0, 1, 0])], [rows.tolist() for rows in stretches([0, 0, 0], [0, 0, 1])]
    ([[0, 1], [2], [3]], [[0, 1], [2]])
    """
    told = np.asarray(tasks)
    if not len(told):
        return []
    changes = told[1:] != told[:-1]
    if visits is not None:
        numbers = np.asarray(visits)
        changes = changes | (numbers[1:] != numbers[:-1])
    return np.split(np.arange(len(told)), np.flatnonzero(changes) + 1)


def visits_by_step(run: Run) -> dict[int, tuple[int, int]]:
    """Step -> its visit, and the task that is trained in it (-1 for joint), of all steps of any group."""
    found: dict[int, tuple[int, int]] = {}
    for group in run.groups:
        dim = next((dim for dim in ("step", "snapshot") if f"{group}/{dim}" in run.nodes), None)
        if dim is None or f"{group}/train_task_index" not in run.nodes:
            continue
        labels, tasks = run.array(f"{group}/{dim}").tolist(), run.array(f"{group}/train_task_index").tolist()
        known = f"{group}/{VISIT}" in run.nodes
        visits = run.array(f"{group}/{VISIT}").tolist() if known else [-1] * len(labels)
        found |= {int(label): (int(v), int(task)) for label, v, task in zip(labels, visits, tasks, strict=True)}
    steps = sorted(found)
    if all(visit >= 0 for visit, _ in found.values()):
        return {step: found[step] for step in steps}
    tasks = [found[step][1] for step in steps]
    return dict(zip(steps, zip(count_visits(tasks).tolist(), tasks, strict=True), strict=True))


def add_visits(parts: dict[str, Arrays], owners: Mapping[str, Run]) -> None:
    """Beside runs that recorded visits, give them to those that did not (schema 1), as their tasks change."""
    having = [arrays[VISIT] for arrays in parts.values() if VISIT in arrays]
    for name, arrays in parts.items() if having else ():
        dim = next((dim for dim in ("step", "snapshot") if dim in arrays), "")
        if dim and VISIT not in arrays:
            known = visits_by_step(owners[name])
            visits = np.array([known[int(label)][0] for label in arrays[dim][1]], np.int64)
            arrays[VISIT] = (dim,), visits, having[0][2]
