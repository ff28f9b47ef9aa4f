"""From a recorded /performance and /expert to the curves of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.continual._arrays import Bools
from waterjar.diagnose.continual._phases import Phases, Rows, cut, finished, nothing
from waterjar.diagnose.continual._settings import chances, variable_read
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.eval_sets import choose_eval_sets
from waterjar.diagnose.result import NO_EVAL_SET, NOT_A_NUMBER, NOT_RECORDED, RUN_ENDED, UNDEFINED, Codes, Floats
from waterjar.diagnose.training_order import stretches_of, training_visits
from waterjar.errors import WaterjarError, setting_as
from waterjar.run.accuracies import check_accuracies
from waterjar.run.schema import REASON


def read_curves(
    performance: xr.Dataset,
    expert: xr.Dataset | None,
    chance: float | tuple[float, ...] | None,
    settings: Any,
    where: str,
) -> TaskCurves:
    """The curves of a cell, from groups as `load_group` gives them; `chance` is what its runs tell of it.

    Joint training has no order of tasks: only what is over all tasks at once is there, the rest is `undefined`. A
    trained task without an eval set has no curves: `no_eval_set`. A task that is trained again has a phase for every
    visit.
    """
    index, epoch = performance["train_task_index"].values, performance["epoch"].values
    visits = training_visits(performance)
    trained = tuple(visit.task for visit in visits)
    both = zip(performance["eval_set"].values, performance["eval_task"].values, strict=True)
    belongs = {str(name): int(task) for name, task in both}
    chosen = choose_eval_sets(belongs, trained, settings.eval_sets, where, "continual") or {0: ""}
    everyone = tuple(chosen)
    values, codes = columns(performance, tuple(chosen.values()), variable_read(settings), where)
    last_row, is_open = performance["last_row"].values, performance["is_open"].values

    def phases(rows: Sequence[Rows]) -> Phases:
        return cut(values, codes, epoch, rows, finished(rows, last_row, is_open), where)

    final = phases((stretches_of(performance) or [np.empty(0, np.intp)])[-1:])  # joint or not
    if trained:
        tasks = trained
        overall = phases([visit.rows for visit in visits])
        network = overall.of_tasks([everyone.index(task) for task in trained])
        unseen = [set(trained).difference(trained[: place + 1]) for place in range(len(trained))]
        counted = np.array([[task not in still for task in everyone] for still in unseen])
        lacking = _lacking(list(dict.fromkeys(trained)), everyone, is_open)
        fresh = _experts(performance, expert, chosen, trained, settings, where)
    else:
        tasks = everyone
        overall = phases([np.flatnonzero(index < 0)])
        network = nothing((len(values), len(tasks), len(tasks)), UNDEFINED)
        counted = np.ones((1, len(tasks)), np.bool_)
        lacking = np.full(len(values), UNDEFINED, np.uint8)
        fresh = nothing((len(values), len(tasks)), UNDEFINED)
    known = any(chosen.values()) and bool(trained) and settings.metric_type == "accuracy"
    level, note = chances(settings, tasks, chance) if known else ((np.nan,) * len(tasks), "")
    start = [everyone.index(task) for task in tasks]
    untouched = len(index) > 0 and epoch[0] == 0
    return TaskCurves(
        tasks=tasks,
        trained=trained,
        eval_sets=chosen,
        network=network,
        overall=overall,
        counted=counted,
        final=final.ends[:, 0],
        final_reasons=final.end_reasons[:, 0],
        lacking=lacking,
        initial=values[:, start, 0] if untouched else np.full(network.ends.shape[:2], np.nan),
        initial_reasons=codes[:, start, 0] if untouched else np.full(network.ends.shape[:2], NOT_RECORDED, np.uint8),
        expert=fresh,
        chance=np.asarray(level),
        chance_note=note,
        settings=settings,
    )


def _lacking(trained: Sequence[int], everyone: Sequence[int], is_open: Bools) -> Codes:
    """(repeat,): why a number over all tasks that are trained is missing; 0 if all are. An open run may yet get there.

    >>> _lacking([0], [0, 1], np.array([False, True])).tolist()  # undefined, run_ended
    [6, 4]
    """
    untrained = set(everyone) - set(trained)
    as_declared = list(trained) == sorted(trained)  # else nobody knows which task would come next
    skipped = as_declared and any(task < max(trained) for task in untrained)
    code = np.where(is_open & (not skipped), RUN_ENDED, UNDEFINED)
    return np.where(bool(untrained), code, 0).astype(np.uint8)


def columns(dataset: xr.Dataset, sets: Sequence[str], name: str, where: str) -> tuple[Floats, Codes]:
    """(repeat, task, step) of the chosen eval sets, and why values are missing."""
    if name not in dataset:
        raise WaterjarError(
            f"{where} has not recorded {name}: choose another with {setting_as('continual.variable')}, "
            f"or {setting_as('continual.metric_type', 'loss')}"
        )
    order = [str(s) for s in dataset["eval_set"].values]
    places = [order.index(chosen) if chosen in order else -1 for chosen in sets]
    absent = np.array(places) < 0
    values = np.asarray(dataset[name].transpose("repeat", "eval_set", "step").values[:, places], np.float64)
    values[:, absent] = np.nan
    if name + REASON in dataset:
        codes: Codes = dataset[name + REASON].transpose("repeat", "eval_set", "step").values[:, places]
    else:
        codes = np.where(np.isnan(values), np.uint8(NOT_A_NUMBER), np.uint8(0))
    if name != "loss":
        check_accuracies(values, f"{where}: {name} of (repeat, task, step)")
    codes[:, absent] = NOT_RECORDED
    codes[:, [not chosen for chosen in sets]] = NO_EVAL_SET
    return values, codes


def _experts(
    performance: xr.Dataset,
    expert: xr.Dataset | None,
    chosen: dict[int, str],
    tasks: Sequence[int],
    settings: Any,
    where: str,
) -> Phases:
    """(repeat, task): the fresh network of each task, on that task, by the seeds of /performance.

    The expert of a task is read at the steps in which that task is trained, on that task's eval set. An /expert of one
    step is a table, as `from_accuracy_matrix` writes it: each eval set by its own task's expert. All visits of a task
    have the same expert: that of the first visit in which one was recorded.
    """
    seeds = np.atleast_1d(performance["seed"].values)
    if expert is None or variable_read(settings) not in expert:
        return nothing((len(seeds), len(tasks)), NOT_RECORDED)
    values, codes = columns(expert, [chosen[task] for task in tasks], variable_read(settings), f"{where}, /expert")
    epoch, own_rows = expert["epoch"].values, dict[int, Rows]()
    for visit in training_visits(expert):
        own_rows.setdefault(visit.task, visit.rows)
    table = len(epoch) == 1
    rows = [np.arange(1) if table else own_rows.get(task, np.empty(0, np.intp)) for task in tasks]
    done = finished(rows, expert["last_row"].values, expert["is_open"].values & (not table))
    own = cut(values, codes, epoch, rows, done, where, goes_on=False).of_own_task()
    theirs = {int(seed): place for place, seed in enumerate(np.atleast_1d(expert["seed"].values))}
    return own.of_repeats([theirs.get(int(seed), -1) for seed in seeds])
