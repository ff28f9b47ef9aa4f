"""Continual learning: what is kept, lost, carried over and made harder from task to task.

Array functions take R[..., train, eval] or A[..., train, eval, epoch] (see `_arrays`), any batch dimensions first;
`measure` takes a run or a study. A new metric is one new file here: its kernel, its declaration, and a function that
takes `TaskCurves` and gives `Measured`.
"""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from waterjar.diagnose.continual._average_accuracy import average_accuracy
from waterjar.diagnose.continual._average_anytime_accuracy import average_anytime_accuracy
from waterjar.diagnose.continual._backward_transfer import backward_transfer
from waterjar.diagnose.continual._cell import measure_cell
from waterjar.diagnose.continual._chance import above_chance
from waterjar.diagnose.continual._forgetting import REFERENCES, forgetting
from waterjar.diagnose.continual._forgetting_rate import forgetting_rate
from waterjar.diagnose.continual._forward_transfer import forward_transfer
from waterjar.diagnose.continual._forward_transfer_gem import forward_transfer_gem
from waterjar.diagnose.continual._integrate import INTEGRATORS, integrate
from waterjar.diagnose.continual._intransigence import intransigence
from waterjar.diagnose.continual._learning_accuracy import learning_accuracy
from waterjar.diagnose.continual._learning_time import learning_time
from waterjar.diagnose.continual._max_dip import max_dip
from waterjar.diagnose.continual._ratio import EPS
from waterjar.diagnose.continual._remembering import remembering
from waterjar.diagnose.continual._settings import Settings
from waterjar.diagnose.continual._stability_gap import min_accuracy, worst_case_accuracy
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.continual._zero_shot import zero_shot
from waterjar.diagnose.labelled import side_by_side, stamp
from waterjar.diagnose.registry import Family
from waterjar.errors import WaterjarError, unknown_name
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


def measure(
    source: Run | Study,
    *,
    metric_type: str = "accuracy",
    variable: str = "accuracy",
    integrator: str = "final",
    eval_sets: Sequence[str] | None = None,
    chance: float | Sequence[float] | None = None,
    floor_at_chance: bool = False,
    bounded: bool = True,
    eps: float = EPS,
    forgetting_reference: str = "max",
) -> xr.Dataset:
    """Every metric of the family: over (repeat, ...) of a run, over (cell, seed, ...) of a study.

    Pairs of tasks stand at (train_task, eval_task), both in the order of training. Metrics with more than one number
    per repeat have `<name>_mean`, their mean over tasks, and `<name>_n_undefined`, how many values that leaves out.

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
    chance : one number, or one per task. Left out: 1 / classes of the run.
    floor_at_chance : values below chance count as chance.
    bounded, eps : see `remembering`.
    forgetting_reference : "max", "learned" or "max_or_last", see `forgetting`.
    """
    names = (eval_sets,) if isinstance(eval_sets, str) else eval_sets
    told = tuple(map(float, chance)) if isinstance(chance, Sequence) else chance
    settings = Settings(
        metric_type=metric_type,
        variable=variable,
        integrator=integrator,
        eval_sets=None if names is None else tuple(names),
        chance=told,
        floor_at_chance=floor_at_chance,
        bounded=bounded,
        eps=eps,
        forgetting_reference=forgetting_reference,
    )
    if forgetting_reference not in REFERENCES:
        raise unknown_name("continual: forgetting_reference", forgetting_reference, REFERENCES)
    if isinstance(source, Run):
        alone = measure_cell([source.path], settings, FAMILY)
        if alone is None:
            raise WaterjarError(f"{source.path} has no group 'performance': it was not recorded")
        found = alone.drop_vars("directory")
    else:
        parts = {}
        for cell, entries in source.cells.items():  # one at a time: memory is that of the largest cell
            measured = measure_cell([source.path / entry.name for entry in entries], settings, FAMILY)
            if measured is not None:
                parts[cell] = measured
        found = side_by_side(parts, source)
    plain = {**vars(settings), "eval_sets": list(names) if names is not None else None}
    return stamp(found, FAMILY, plain, source)


FAMILY = Family("continual", "Continual learning", "cell", ("performance",), measure)
