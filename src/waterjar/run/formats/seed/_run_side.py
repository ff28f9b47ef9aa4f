"""What a run has for the layout: which steps, which values at them, and what would be left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.reader import Arrays, Run, read_group
from waterjar.run.schema import JOINT, REASON, REASONS, STEP_COORDINATES

Array = NDArray[Any]
NOT_RECORDED = REASONS.index("not_recorded")
NOT_A_NUMBER = REASONS.index("not_a_number")


@dataclass(frozen=True)
class Steps:
    """The steps of a task that go into the layout: their labels, and where they stand."""

    labels: list[int]
    epochs: list[float]
    total_epochs: list[float]
    effective_epochs: list[float]


@dataclass(frozen=True)
class Group:
    """A step group in memory, values by the labels of steps."""

    name: str
    arrays: Arrays

    @property
    def labels(self) -> list[int]:
        """Of its steps."""
        return [int(label) for label in self.arrays["step"][1]]

    def at(self, variable: str, labels: Sequence[int], inner: tuple[int, ...]) -> tuple[Array, Array]:
        """(step, *inner) of a variable at these steps, and why values are missing, as codes."""
        values = np.full((len(labels), *inner), np.nan)
        codes = np.full(values.shape, NOT_RECORDED, np.uint8)
        if variable not in self.arrays:
            return values, codes
        stored = self.arrays[variable][1]
        values = values.astype(stored.dtype)
        place = {label: row for row, label in enumerate(self.labels)}
        for i, label in enumerate(labels):
            if label in place:
                values[i] = stored[place[label]]
                codes[i] = self._reasons(variable, place[label])
        return values, codes

    def _reasons(self, variable: str, row: int) -> Array:
        companion = self.arrays.get(variable + REASON)
        if companion is not None:
            return np.asarray(companion[1][row])
        return np.where(np.isnan(self.arrays[variable][1][row]), NOT_A_NUMBER, 0)


def step_group(run: Run, name: str) -> Group | None:
    """A group of the run, read directly; None if it was not recorded or has no step."""
    if name not in run.groups:
        return None
    arrays, _ = read_group(run, name)
    return Group(name, arrays) if "step" in arrays and len(arrays["step"][1]) else None


def steps_of_tasks(run: Run, performance: Group) -> list[Steps]:
    """The steps of each task, those before its training left out; every task trained, each with as many."""
    tasks = run.attributes["tasks"]
    index, epoch, total, effective = (
        performance.arrays[name][1] for name in ("train_task_index", "epoch", "total_epoch", "effective_epoch")
    )
    found = []
    for task, name in enumerate(tasks):
        rows = np.flatnonzero((index == task) & (epoch > 0))
        if not len(rows):
            raise WaterjarError(f"{run.path}: task '{name}' was never trained: the layout has a folder for every task")
        found.append(
            Steps(
                [performance.labels[row] for row in rows],
                *([float(column[row]) for row in rows] for column in (epoch, total, effective)),
            )
        )
        if len(rows) != len(found[0].labels):
            raise WaterjarError(
                f"{run.path}: task '{name}' has {len(rows)} evaluations, '{tasks[0]}' has {len(found[0].labels)}: the "
                "layout holds as many of each. Finish the run first, if it is not finished"
            )
    return found


def sets_of_tasks(run: Run) -> list[str]:
    """The evaluation set of each task; the layout has room for one."""
    by_task: dict[int, list[str]] = {}
    for name, task in run.attributes["eval_sets"].items():
        by_task.setdefault(int(task), []).append(name)
    found = []
    for task, name in enumerate(run.attributes["tasks"]):
        sets = by_task.get(task, [])
        if len(sets) != 1:
            raise WaterjarError(
                f"{run.path}: task '{name}' has {len(sets)} evaluation sets {sets}; one each is what the layout holds"
            )
        found.append(sets[0])
    return found


def one_reason(codes: Array) -> tuple[str | None, bool]:
    """The reason that stands for all that is missing, or None; and whether it is not the only one."""
    counts = Counter(codes[codes > 0].tolist())
    if not counts:
        return None, False
    return REASONS[counts.most_common(1)[0][0]], len(counts) > 1


def left_behind(run: Run, kept: Sequence[Steps], performance: Group, used: Mapping[str, Iterable[str]]) -> list[str]:
    """In words, everything of the run that has no place in the layout. `used` goes by group."""
    notes = []
    labels = {label for steps in kept for label in steps.labels}
    epoch, task = performance.arrays["epoch"][1], performance.arrays["train_task"][1]
    before = sum(1 for row, label in enumerate(performance.labels) if label not in labels and epoch[row] == 0)
    if before:
        notes.append(f"{before} evaluations at epoch 0 (step 0: before any training), which the layout leaves out")
    joint = sum(1 for name in task if name == JOINT)
    if joint:
        notes.append(f"{joint} evaluations of joint training")
    nodes = run.nodes
    labelling = {
        "eval_set",
        "eval_task",
        "repeat",
        "seed",
        "class",
        "layer",
        "layer_start",
        "layer_stop",
        "layer_shape",
    }
    stamps = {"step", "snapshot", *STEP_COORDINATES}
    lost: dict[str, list[str]] = {}
    for key, node in nodes.items():
        group, _, name = key.rpartition("/")
        known = {*labelling, *stamps, "event", *used.get(group, ())}
        if node["node_type"] == "array" and not name.endswith(REASON) and name not in known:
            lost.setdefault(group, []).append(name)
    notes += [f"/{group}: {', '.join(sorted(names))}" for group, names in sorted(lost.items())]
    without_task = [name for name, number in run.attributes["eval_sets"].items() if number < 0]
    if without_task:
        notes.append(f"evaluation sets of no task: {', '.join(without_task)}")
    return [*notes, "provenance and seal of the run: who imports the layout gets a new one"]
