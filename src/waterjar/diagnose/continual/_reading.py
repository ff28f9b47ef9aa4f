"""From a recorded /performance and /expert to the curves of a cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.continual._arrays import Floats, own_curves
from waterjar.diagnose.continual._settings import Settings
from waterjar.diagnose.continual._task_curves import Codes, TaskCurves
from waterjar.diagnose.labelled import NOT_A_NUMBER, NOT_RECORDED, REASON, UNDEFINED
from waterjar.errors import WaterjarError, unknown_name


def read_curves(
    performance: xr.Dataset, expert: xr.Dataset | None, classes: int | None, settings: Settings, where: str
) -> TaskCurves:
    """The curves of a cell.

    Joint training has no order of tasks: everything is missing there, as `undefined`. A trained task without an eval
    set has `not_recorded` curves.
    """
    index = performance["train_task_index"].values
    trained = tuple(int(i) for i in np.unique(index[index >= 0]))
    tasks = trained or tuple(int(i) for i in np.unique(performance["eval_task"].values) if i >= 0) or (0,)
    sets = choose_eval_sets(performance, tasks, settings.eval_sets, where)
    values, codes = _columns(performance, sets, settings.read, where)
    rows = {task: np.flatnonzero(index == task) for task in trained}
    places = [rows.get(task, _NONE) for task in tasks]
    raw, reasons, epochs = _by_task(values, codes, performance["epoch"].values, places, where)
    if not trained:
        reasons[:] = UNDEFINED
    known = any(sets) and bool(trained) and settings.metric_type == "accuracy"
    chance = settings.chances(tasks, classes, where) if known else (np.nan,) * len(tasks)
    start = [row for row in rows.get(tasks[0], _NONE)[:1] if performance["epoch"].values[row] == 0]
    own, own_reasons, own_epochs = _experts(performance, expert, tasks, sets, settings, where)
    if not trained:
        own_reasons[:] = UNDEFINED
    return TaskCurves(
        tasks=tasks,
        eval_sets=sets,
        raw=raw,
        reasons=reasons,
        epochs=epochs,
        initial=values[..., start[0]] if start else np.full(values.shape[:2], np.nan),
        initial_reasons=codes[..., start[0]] if start else np.full(values.shape[:2], NOT_RECORDED, np.uint8),
        expert=own,
        expert_epochs=own_epochs,
        expert_reasons=own_reasons,
        chance=np.asarray(chance),
        settings=settings,
    )


_NONE: NDArray[np.intp] = np.empty(0, np.intp)


def choose_eval_sets(
    performance: xr.Dataset, tasks: Sequence[int], wanted: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """One eval set per task: the one that is wanted; else the task's only one; else the one of all its samples.

    "All its samples" goes by name: the only one that ends in `_all`, or else in `_all_normal`. Empty where a task has
    no eval set.
    """
    both = zip(performance["eval_set"].values, performance["eval_task"].values, strict=True)
    belongs = {str(name): int(task) for name, task in both}
    for name in wanted or ():
        if name not in belongs:
            raise unknown_name(f"{where}: eval_set", name, belongs)
    chosen = []
    for task in tasks:
        own = [name for name, t in belongs.items() if t == task and (wanted is None or name in wanted)]
        if wanted is not None and len(own) != 1:
            raise WaterjarError(
                f"{where}: eval_sets={list(wanted)} has {len(own)} sets of task {task}, one would be right. "
                f"Those of the task: {', '.join(repr(n) for n, t in belongs.items() if t == task) or 'none'}"
            )
        for ending in ("_all", "_all_normal"):
            if len(own) > 1:
                own = [name for name in own if name.endswith(ending)] or own
        if len(own) > 1:
            raise WaterjarError(
                f"{where}: task {task} has several eval sets, {', '.join(map(repr, own))}: "
                "say which with eval_sets=[...], one per task"
            )
        chosen.append(own[0] if own else "")
    return tuple(chosen)


def _columns(dataset: xr.Dataset, sets: Sequence[str], name: str, where: str) -> tuple[Floats, Codes]:
    """(repeat, task, step) of the chosen eval sets, and why values are missing."""
    if name not in dataset:
        raise WaterjarError(f"{where} has not recorded {name}: choose another with variable=... or metric_type=...")
    order = [str(s) for s in dataset["eval_set"].values]
    places = [order.index(chosen) if chosen in order else -1 for chosen in sets]
    absent = np.array(places) < 0
    values = np.asarray(dataset[name].transpose("repeat", "eval_set", "step").values[:, places], np.float64)
    values[:, absent] = np.nan
    if name + REASON in dataset:
        codes: Codes = dataset[name + REASON].transpose("repeat", "eval_set", "step").values[:, places]
    else:
        codes = np.where(np.isnan(values), np.uint8(NOT_A_NUMBER), np.uint8(0))
    codes[:, absent] = NOT_RECORDED
    return values, codes


def _by_task(
    values: Floats, codes: Codes, epoch: Floats, rows: Sequence[NDArray[np.intp]], where: str
) -> tuple[Floats, Codes, Floats]:
    """(repeat, eval_task, step) -> (repeat, train_task, eval_task, epoch), reasons, (train_task, epoch)."""
    repeats, columns, _ = values.shape
    longest = max((len(found) for found in rows), default=0) or 1
    raw = np.full((repeats, len(rows), columns, longest), np.nan)
    epochs = np.full((len(rows), longest), np.nan)
    reasons = np.full((repeats, len(rows), columns), NOT_RECORDED, np.uint8)
    for i, found in enumerate(rows):
        if not len(found):
            continue
        times = epoch[found]
        if (np.diff(times) <= 0).any():
            raise WaterjarError(
                f"{where}: the epochs of a task do not rise: {times.tolist()}. A task that is trained twice has no one "
                "curve: record the second time as a task of its own"
            )
        whole = found[-1] - found[0] + 1 == len(found)  # as it should be; then nothing need be copied
        place = slice(found[0], found[-1] + 1) if whole else found
        part, why = values[..., place], codes[..., place]
        broken = (why == NOT_A_NUMBER).any(-1)
        raw[:, i, :, : len(found)] = np.where(broken[..., None], np.nan, part)
        epochs[i, : len(found)] = times
        some = (~np.isnan(part)).any(-1)
        reasons[:, i] = np.where(broken, NOT_A_NUMBER, np.where(some, 0, why[..., -1]))
    return raw, reasons, epochs


def _experts(
    performance: xr.Dataset,
    expert: xr.Dataset | None,
    tasks: Sequence[int],
    sets: Sequence[str],
    settings: Settings,
    where: str,
) -> tuple[Floats, Codes, Floats]:
    """(repeat, task, epoch), reasons (repeat, task), (task, epoch).

    The expert of a task is read at the steps in which that task is trained, on that task's eval set. An /expert of one
    step is a table, as `from_accuracy_matrix` writes it: each eval set by its own task's expert.
    """
    seeds = np.atleast_1d(performance["seed"].values)
    shape = (len(seeds), len(tasks), 1)
    nothing = np.full(shape, np.nan), np.full(shape[:2], NOT_RECORDED, np.uint8), np.full(shape[1:], np.nan)
    if expert is None or settings.read not in expert:
        return nothing
    values, codes = _columns(expert, sets, settings.read, f"{where}, /expert")
    index, epoch = expert["train_task_index"].values, expert["epoch"].values
    table = len(index) == 1
    rows = [np.arange(1) if table else np.flatnonzero(index == task) for task in tasks]
    raw, reasons, epochs = _by_task(values, codes, epoch, rows, where)
    own, own_reasons = own_curves(raw), np.diagonal(reasons, axis1=-2, axis2=-1)
    theirs = {int(seed): place for place, seed in enumerate(np.atleast_1d(expert["seed"].values))}
    longer = np.full((*shape[:2], own.shape[-1]), np.nan)
    why: Codes = np.full(shape[:2], NOT_RECORDED, np.uint8)
    for place, seed in enumerate(seeds):
        if int(seed) in theirs:
            longer[place], why[place] = own[theirs[int(seed)]], own_reasons[theirs[int(seed)]]
    return longer, why, epochs
