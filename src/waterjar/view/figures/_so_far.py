"""Averages over tasks as they stand at every evaluation: over the tasks trained so far, by the family's own kernels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.continual import backward_transfer, forgetting
from waterjar.diagnose.continual._arrays import Floats, learned, mean_or_nan
from waterjar.diagnose.continual._loading import load_cell, read_roots
from waterjar.diagnose.continual._reading import _columns, read_curves
from waterjar.diagnose.continual._settings import check_settings
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.labelled import UNDEFINED
from waterjar.run.study import Study

Codes = NDArray[np.uint8]


class SoFar(NamedTuple):
    """One metric of one cell: values and codes (repeat, place), where each place stands."""

    values: Floats
    codes: Codes
    seeds: NDArray[np.int64]
    place: NDArray[np.int64]
    """The step, or the task by its place in the order."""
    x: Floats
    """Total epoch of a step; number of a task, from 1."""
    train_task: list[str]


def over_steps(study: Study, result: xr.Dataset, name: str) -> Iterator[tuple[str, SoFar]]:
    """(cell, metric so far) of every cell: at a step of the k-th task, as if training ended there.

    average_accuracy: the mean over the tasks seen so far (one that the run never trains counts all along), which is
    the curve that average anytime accuracy is the mean of. backward_transfer and forgetting: of R with the rows of the
    tasks before, and the step's own evaluations as the last row. At the last step each is the number of the table.
    """
    for cell, curves, performance, table in _cells(study, result):
        index = performance["train_task_index"].values
        now, why = _columns(performance, list(curves.eval_sets.values()), curves.settings.read, cell)
        phases = list(curves.tasks) if (index >= 0).any() else [-1]
        values = np.full((len(now), len(index)), np.nan)
        codes = np.full(values.shape, UNDEFINED, np.uint8)
        for p, task in enumerate(phases):
            rows = np.flatnonzero(index == task) if task >= 0 else np.flatnonzero(index < 0)
            made = _KERNELS[name](curves, p, now[:, :, rows].swapaxes(1, 2), why[:, :, rows].swapaxes(1, 2))
            values[:, rows], codes[:, rows] = made
        known = ~np.isnan(values)
        codes = np.where(known, 0, np.where(codes == 0, UNDEFINED, codes)).astype(np.uint8)
        step = performance["step"].values
        x, task_names = (table[key].sel(step=step).values for key in ("total_epoch", "train_task"))
        seeds = np.atleast_1d(performance["seed"].values)
        yield cell, SoFar(values, codes, seeds, step, x.astype(float), task_names.astype(str).tolist())


def of_own_task(study: Study, result: xr.Dataset) -> Iterator[tuple[str, SoFar]]:
    """(cell, accuracy of each task at the end of its own training): what learning accuracy is the mean of."""
    for cell, curves, performance, _ in _cells(study, result):
        values, codes = learned(curves.ends), learned(curves.end_reasons)
        tasks = np.asarray(curves.tasks)
        seeds = np.atleast_1d(performance["seed"].values)
        yield cell, SoFar(values, codes, seeds, tasks, tasks + 1.0, [str(task) for task in tasks])


def _cells(study: Study, result: xr.Dataset) -> Iterator[tuple[str, TaskCurves, xr.Dataset, xr.Dataset]]:
    """(cell, its curves, what was read, coordinates of its steps), with the settings that the result was made with."""
    settings = check_settings(**json.loads(result.attrs["settings"]))
    measured = {str(cell) for cell in result["cell"].values}
    for cell, entries in study.cells.items():
        paths = [study.path / entry.name for entry in entries]
        performance = load_cell(read_roots(paths), "performance", settings.read) if cell in measured else None
        if performance is None:
            continue
        table = Study(study.path, entries).load("performance")[cell]
        yield cell, read_curves(performance, None, None, settings, str(paths[0])), performance, table


def _average(curves: TaskCurves, phase: int, now: Floats, why: Codes) -> tuple[Floats, Codes]:
    those = curves.counted[phase]
    if curves.is_loss or not those.any():
        return np.full(now.shape[:2], np.nan), np.full(now.shape[:2], UNDEFINED, np.uint8)
    return now[..., those].mean(-1), why[..., those].max(-1)


def _of_matrix(kernel: Callable[[Floats, TaskCurves], Floats]) -> Callable[..., tuple[Floats, Codes]]:
    def so_far(curves: TaskCurves, phase: int, now: Floats, why: Codes) -> tuple[Floats, Codes]:
        repeats, rows, _ = now.shape
        if phase == 0:  # nothing was learned before
            return np.full((repeats, rows), np.nan), np.full((repeats, rows), UNDEFINED, np.uint8)
        everyone = list(curves.eval_sets)
        seen = [everyone.index(task) for task in curves.tasks[: phase + 1]]
        before = curves.ends[:, None, :phase, : phase + 1]
        matrix = np.empty((repeats, rows, phase + 1, phase + 1))
        matrix[:, :, :phase] = before
        matrix[:, :, phase] = curves.sign * now[:, :, seen]
        # a task that is evaluated before its training need not have been
        needed = np.tril(curves.end_reasons[:, :phase, : phase + 1]).max((-2, -1))
        return kernel(matrix, curves), np.maximum(needed[:, None], why[:, :, seen].max(-1))

    return so_far


def _forgetting(matrix: Floats, curves: TaskCurves) -> Floats:
    return mean_or_nan(forgetting(matrix, curves.settings.forgetting_reference)[..., :-1])


_KERNELS: dict[str, Callable[..., tuple[Floats, Codes]]] = {
    "average_accuracy": _average,
    "backward_transfer": _of_matrix(lambda matrix, curves: backward_transfer(matrix)),
    "forgetting": _of_matrix(_forgetting),
}
SO_FAR = tuple(_KERNELS)
"""Metrics over all tasks that have a value at every evaluation."""
