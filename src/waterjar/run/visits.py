"""Visits: stretches of training on one task, or on all at once, counted from 0 over the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.run.reader import Arrays, Run
from waterjar.run.schema import STEP_COORDINATES

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
    """Step -> its visit, and the task that is trained in it (-1 for joint), of all steps of any group.

    Schema 1 did not record visits: there every change of task begins the next, in whichever group it shows.
    """
    found: dict[int, tuple[int, int]] = {}
    for group, dim in sorted(_dims(run).items(), key=lambda item: -run.nodes["/".join(item)]["shape"][0]):
        if len(found) > run.last_step:
            break  # none is left to be found
        known = f"{group}/{VISIT}" in run.nodes
        labels, tasks = (run.array(f"{group}/{name}").tolist() for name in (dim, "train_task_index"))
        visits = run.array(f"{group}/{VISIT}").tolist() if known else [-1] * len(labels)
        found |= {int(label): (int(v), int(task)) for label, v, task in zip(labels, visits, tasks, strict=True)}
    steps = sorted(found)
    tasks = [found[step][1] for step in steps]
    counted = count_visits(tasks).tolist() if any(visit < 0 for visit, _ in found.values()) else None
    visits = [found[step][0] for step in steps] if counted is None else counted
    return {step: (visit, task) for step, visit, task in zip(steps, visits, tasks, strict=True)}


def _dims(run: Run) -> dict[str, str]:
    """Group -> the dimension that it grows along, of those that say which task was trained.

    Probe runs of earlier versions counted visits of their own: /probes are asked only where there is nothing else.
    """
    there = [group for group in run.groups if f"{group}/train_task_index" in run.nodes]
    there = [group for group in there if not group.startswith("probes/")] or there
    dims = {group: next((d for d in ("step", "snapshot") if f"{group}/{d}" in run.nodes), "") for group in there}
    return {group: dim for group, dim in dims.items() if dim}


def add_visits(parts: dict[str, Arrays], owners: Mapping[str, Run], asked: bool) -> None:
    """Give visits to arrays of runs that did not record them (schema 1), if asked or where others of the cell did."""
    for name, arrays in parts.items() if asked or any(VISIT in arrays for arrays in parts.values()) else ():
        dim = next((dim for dim in ("step", "snapshot") if dim in arrays), "")
        if dim and VISIT not in arrays:
            known = visits_by_step(owners[name])
            visits = np.array([known[int(label)][0] for label in arrays[dim][1]], np.int64)
            arrays[VISIT] = (dim,), visits, {"long_name": STEP_COORDINATES[VISIT]}
