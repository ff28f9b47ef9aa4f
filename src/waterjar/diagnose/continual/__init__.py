"""Continual learning: what is kept, lost, carried over and made harder from task to task.

Array functions take R[..., train, eval] or A[..., train, eval, epoch] (see `_arrays`), any batch dimensions first;
`measure` takes a run or a study. A new metric is one new file here: its kernel, its declaration, and a function that
takes `TaskCurves` and gives a `Result` over (repeat, *dims).
"""

from __future__ import annotations

import xarray as xr

from waterjar.diagnose.continual._average_accuracy import average_accuracy
from waterjar.diagnose.continual._average_anytime_accuracy import average_anytime_accuracy
from waterjar.diagnose.continual._backward_transfer import backward_transfer
from waterjar.diagnose.continual._chance import above_chance
from waterjar.diagnose.continual._feeds import feeds
from waterjar.diagnose.continual._forgetting import forgetting
from waterjar.diagnose.continual._forgetting_rate import forgetting_rate
from waterjar.diagnose.continual._forward_transfer import forward_transfer
from waterjar.diagnose.continual._forward_transfer_gem import forward_transfer_gem
from waterjar.diagnose.continual._integrate import INTEGRATORS, Integrator, integrate
from waterjar.diagnose.continual._intransigence import intransigence
from waterjar.diagnose.continual._learning_accuracy import learning_accuracy
from waterjar.diagnose.continual._learning_time import learning_time
from waterjar.diagnose.continual._loaded import Cell
from waterjar.diagnose.continual._max_dip import max_dip
from waterjar.diagnose.continual._ratio import EPS
from waterjar.diagnose.continual._remembering import remembering
from waterjar.diagnose.continual._settings import (
    REFERENCES,
    AccuracyVariable,
    MetricType,
    Reference,
    Small,
)
from waterjar.diagnose.continual._stability_gap import min_accuracy, worst_case_accuracy
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._zero_shot import zero_shot
from waterjar.diagnose.registry import Family
from waterjar.diagnose.settings import Chance, Names, settings_of
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "INTEGRATORS",
    "REFERENCES",
    "TaskCurves",
    "above_chance",
    "average_accuracy",
    "average_anytime_accuracy",
    "backward_transfer",
    "forgetting",
    "forgetting_rate",
    "forward_transfer",
    "forward_transfer_gem",
    "integrate",
    "intransigence",
    "learning_accuracy",
    "learning_time",
    "max_dip",
    "measure",
    "min_accuracy",
    "remembering",
    "worst_case_accuracy",
    "zero_shot",
]


@settings_of("continual")
def measure(
    source: Run | Study,
    *,
    metric_type: MetricType = "accuracy",
    variable: AccuracyVariable = "accuracy",
    integrator: Integrator = "final",
    eval_sets: Names | None = None,
    chance: Chance = None,
    floor_at_chance: bool = False,
    bounded: bool = True,
    eps: Small = EPS,
    forgetting_reference: Reference = "max",
) -> xr.Dataset:
    """Every metric of the family: over (repeat, ...) of a run, over (cell, seed, ...) of a study.

    Pairs of tasks stand at (train_task, eval_task), both in the order of training, which is the one recorded, whatever
    was declared; `order_note` says where they differ.

    A task that is trained again (x, y, x, y) has one row per visit: `train_task` and `eval_task` run over visits, which
    are never merged. The first visit of a task has the task's label, each further one adds the number of tasks, and
    `train_visit` and `eval_visit` name them ("x (2nd time)"). What was learned in a visit is followed until its task is
    visited again; every metric says what it is over then. Where no task is trained again, a visit is a task.

    Metrics with more than one number per repeat have `<name>_mean`, their mean over tasks, `<name>_n`, how many values
    that is over, and `<name>_n_undefined`, how many it leaves out as undefined.

    Over which tasks: a run's tasks are those it trains and those that have an eval set (`tasks` and `n_tasks` name and
    count them). ACC and AAA take a task that is never trained on its own as it was evaluated, and are there for joint
    training too. Whatever else is ONE number per repeat asks for the training of every one of the tasks: where some
    were never trained it is `undefined`, not a mean over the others, so that no two cells with the same `tasks` are
    compared over different ones. Values of single tasks and pairs stay. An eval set of no task (-1) takes no part.

    What is missing: of a run that is shorter than the longest of its cell, or not sealed yet, whatever needs the end
    of a task that it has not finished is `run_ended`; tasks that it has finished stay. An evaluation that is
    `not_a_number` takes away the end where it is the last one, and whatever is over the whole curve (auc, mean, min,
    max, median, learning_time, forgetting_rate, max_dip, AAA, min-ACC). Where a task has no epoch 0, the last
    evaluation before it is its epoch 0.

    Parameters
    ----------
    metric_type : "accuracy", or "loss": no correction for chance; remembering, zero_shot, forward_transfer and
        forgetting_rate change their direction (said in their attributes); BWT, FWT, forgetting and intransigence are
        taken of minus the loss and keep theirs; averages of accuracy are undefined.
    variable : "accuracy", "macro_accuracy" or "task_accuracy".
    integrator : how a task's epochs become one number in remembering, zero_shot and forward_transfer, of the network
        and of its expert: final, auc, mean, min, max, median (see `integrate`). Other metrics name their epochs.
    eval_sets : one per task, by name. Left out: the task's only one, else the only one called `..._all`, else the only
        one called `..._all_normal`.
    chance : one number, or one per task. Left out: as annotated, else 1 / classes of the run. Where neither is known
        (and of task_accuracy), what is above chance is missing as `chance_unknown` (remembering, zero_shot,
        forward_transfer, forgetting_rate, max_dip; `chance_note` says what would help), and the rest is there.
    floor_at_chance : values below chance count as chance.
    bounded, eps : see `remembering`.
    forgetting_reference : "max", "learned" or "max_or_last", see `forgetting`.
    """
    raise AssertionError


FAMILY = Family(
    "continual",
    "Continual learning",
    "cell",
    ("performance",),
    {TaskCurves: ("repeat",)},
    Cell,
    measure,
    dims=("train_task", "eval_task"),
    version=6,
    feeds=feeds,
)
