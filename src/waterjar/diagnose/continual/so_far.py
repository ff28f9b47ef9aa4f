"""Metrics over tasks as training goes on: at every evaluation over the tasks so far, and at the end of every task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.analysis import Analysis
from waterjar.diagnose.continual import FAMILY
from waterjar.diagnose.continual._arrays import learned, mean_or_nan
from waterjar.diagnose.continual._backward_transfer import change
from waterjar.diagnose.continual._forgetting import fall
from waterjar.diagnose.continual._loaded import load_group
from waterjar.diagnose.continual._reading import columns, read_curves
from waterjar.diagnose.continual._settings import variable_read
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._visits import last_of_others, of_visits, untrained
from waterjar.diagnose.measuring import Unit, units_of
from waterjar.diagnose.result import UNDEFINED, Codes, Floats
from waterjar.diagnose.training_order import training_visits, visit_labels, visit_names, visit_names_of
from waterjar.run.schema import JOINT
from waterjar.run.study import Study


class SoFar(NamedTuple):
    """One metric of one cell: values and codes (repeat, place), and where each place stands."""

    values: Floats
    codes: Codes
    seeds: NDArray[np.int64]
    place: NDArray[np.int64]
    """The step, or the task by its place in the order (of further visits: `visit_labels`)."""
    x: Floats
    """Total epoch of a step; number of a task, from 1."""
    train_task: list[str]


class TaskEnds(NamedTuple):
    """One cell on every task at the end of training on every task."""

    train_tasks: list[str]
    eval_tasks: list[str]
    eval_sets: list[str]
    values: Floats
    """(repeat, train task, eval task)."""
    codes: Codes


def over_steps(study: Study, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, SoFar]]:
    """(cell, metric so far) of every cell: at a step of the k-th task, as if training ended there.

    average_accuracy: the mean over the tasks seen so far (one that the run never trains counts all along), which is
    the curve that average anytime accuracy is the mean of. backward_transfer and forgetting: of R with the rows of the
    tasks before, and the step's own evaluations as the last row. At the last step each is the number of the table.
    `settings` are those of the family.
    """
    for unit, curves, performance in _cells(study, settings):
        index = performance["train_task_index"].values
        read = variable_read(curves.settings)
        now, why = columns(performance, list(curves.eval_sets.values()), read, unit.title)
        phases = [visit.rows for visit in training_visits(performance)] or [np.flatnonzero(index < 0)]
        values = np.full((len(now), len(index)), np.nan)
        codes = np.full(values.shape, UNDEFINED, np.uint8)
        for p, rows in enumerate(phases):
            made = _KERNELS[name](curves, p, now[:, :, rows].swapaxes(1, 2), why[:, :, rows].swapaxes(1, 2))
            values[:, rows], codes[:, rows] = made
        codes = np.where(np.isnan(values), np.where(codes == 0, UNDEFINED, codes), 0).astype(np.uint8)
        steps = unit.load("performance", {"step", "total_epoch", "train_task", "train_task_index", "visit"})
        assert steps is not None  # its curves were read
        x, tasks = steps["total_epoch"].values.astype(float), visit_names_of(steps)
        yield unit.name, SoFar(values, codes, np.asarray(unit.seeds), steps["step"].values, x, tasks)


def of_own_task(study: Study, settings: Mapping[str, Any]) -> Iterator[tuple[str, SoFar]]:
    """(cell, accuracy of each task at the end of each visit of it): what learning accuracy is the mean of."""
    for unit, curves, _ in _cells(study, settings):
        tasks = np.asarray(visit_labels(curves.tasks, len(unit.runs[0].attributes["tasks"])))
        names = visit_names([str(task) for task in curves.tasks], range(len(tasks)))
        values, codes = learned(curves.ends), learned(curves.end_reasons)
        yield unit.name, SoFar(values, codes, np.asarray(unit.seeds), tasks, tasks + 1.0, names)


def ends_of_tasks(study: Study, settings: Mapping[str, Any]) -> Iterator[tuple[str, TaskEnds]]:
    """(cell, every task at the end of every visit) of every cell; joint training has one train task, "joint"."""
    for unit, curves, performance in _cells(study, settings):
        known = list(unit.runs[0].attributes["tasks"])
        names = {task: str(known[task]) if 0 <= task < len(known) else f"task {task}" for task in curves.eval_sets}
        joint = not (performance["train_task_index"].values >= 0).any()
        visited = [names[task] for task in curves.tasks]
        trained = [JOINT] if joint else visit_names(visited, range(len(visited)))
        sets, overall = list(curves.eval_sets.values()), curves.overall
        yield unit.name, TaskEnds(trained, list(names.values()), sets, overall.ends, overall.end_reasons)


def _cells(study: Study, given: Mapping[str, Any]) -> Iterator[tuple[Unit, TaskCurves, xr.Dataset]]:
    """Every cell with its curves, and the arrays they were read from."""
    settings = FAMILY.settings(given)
    for unit in units_of(FAMILY, study, Analysis()):
        performance = load_group(unit, "performance", settings)
        assert performance is not None  # a unit without it is none of this family
        yield unit, read_curves(performance, None, None, settings, str(unit.runs[0].path)), performance


def _average(curves: TaskCurves, phase: int, now: Floats, why: Codes) -> tuple[Floats, Codes]:
    those = curves.counted[phase]
    if curves.is_loss or not those.any():
        return np.full(now.shape[:2], np.nan), np.full(now.shape[:2], UNDEFINED, np.uint8)
    return now[..., those].mean(-1), why[..., those].max(-1)


def _of_matrix(kernel: Callable[[Floats, Sequence[int], TaskCurves], Floats]) -> Callable[..., tuple[Floats, Codes]]:
    def so_far(curves: TaskCurves, phase: int, now: Floats, why: Codes) -> tuple[Floats, Codes]:
        repeats, rows, _ = now.shape
        if phase == 0:  # nothing was learned before
            return np.full((repeats, rows), np.nan), np.full((repeats, rows), UNDEFINED, np.uint8)
        everyone, tasks = list(curves.eval_sets), curves.tasks[: phase + 1]
        seen = [everyone.index(task) for task in tasks]
        matrix = np.empty((repeats, rows, phase + 1, phase + 1))
        matrix[:, :, :phase] = curves.ends[:, None, :phase, : phase + 1]
        matrix[:, :, phase] = curves.sign * now[:, :, seen]
        # a task that is evaluated before its training need not have been
        before = untrained(tasks)[:phase]
        needed = np.where(before, 0, curves.end_reasons[:, :phase, : phase + 1]).max((-2, -1))
        return kernel(matrix, tasks, curves), np.maximum(needed[:, None], why[:, :, seen].max(-1))

    return so_far


def _forgetting(matrix: Floats, tasks: Sequence[int], curves: TaskCurves) -> Floats:
    fallen = fall(matrix, curves.settings.forgetting_reference, tasks)
    return mean_or_nan(of_visits(fallen, last_of_others(tasks)))


_KERNELS: dict[str, Callable[..., tuple[Floats, Codes]]] = {
    "average_accuracy": _average,
    "backward_transfer": _of_matrix(lambda matrix, tasks, _: change(matrix, tasks)),
    "forgetting": _of_matrix(_forgetting),
}
SO_FAR = tuple(_KERNELS)
"""Metrics over all tasks that have a value at every evaluation."""
