"""What one cell brings: its accuracies during the last task, by evaluation set, seed and effective epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import AfterValidator

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.measuring import Unit
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED, RUN_ENDED, Codes, Floats
from waterjar.diagnose.rigidity.curves import check_epochs
from waterjar.diagnose.rigidity.guessing import Guessing, guessing_of
from waterjar.diagnose.settings import check_chance
from waterjar.diagnose.training_order import Visit, order_note, training_visits
from waterjar.errors import WaterjarError, setting_as, unknown_name
from waterjar.run.accuracies import check_accuracies
from waterjar.run.faults import Expected
from waterjar.run.schema import JOINT, REASON

EVAL_SETS = {
    "normal": "t2_shortcut_normal",
    "masked": "t2_shortcut_masked",
    "validation": "t2_validation",
    "nonshortcut": "t2_nonshortcut_normal",
    "clean": "t2_shortcut_clean",
    "random_mask": "t2_shortcut_random_mask",
    "nonshortcut_masked": "t2_nonshortcut_masked",
    "nonshortcut_patched": "t2_nonshortcut_patched",
    "t1": "t1_all",
}
"""Role in the index -> evaluation set of the laboratory."""

REQUIRED = ("normal", "masked", "validation")
"""Without these there is no index; the others are controls, missing with a reason where they were not recorded."""


@dataclass(frozen=True, eq=False)
class Side:
    """One cell during its last task."""

    name: str
    seeds: NDArray[np.int64]
    """(repeat,)"""
    epochs: Floats
    """(epoch,): effective epochs; 0 is the evaluation right before the last task began."""
    steps: NDArray[np.int64]
    """(epoch,)"""
    values: Mapping[str, Floats]
    """Role -> (repeat, epoch)."""
    reasons: Mapping[str, Codes]
    """Role -> (repeat, epoch), 0 where the value is there."""
    trained: NDArray[np.int64]
    """What was trained in these epochs, by its place among the tasks as declared (-1 is joint training)."""
    guessing: Guessing
    """What is known of guessing on its evaluation sets."""
    order_note: str = ""
    """What is to be said where its last task is not the one that was declared last; else empty."""

    @property
    def budget(self) -> float:
        """The last effective epoch; infinite where the last task has not begun, so that it limits nobody."""
        last = float(self.epochs[-1])
        return last if last > 0 else math.inf


def _roles(given: dict[str, str]) -> dict[str, str]:
    for role in given:
        if role not in EVAL_SETS:
            raise ValueError(f"{role} is no role")
    return given


EvalSets = Annotated[
    Annotated[dict[str, str], AfterValidator(_roles)] | None,
    Expected(f"role -> name of an evaluation set, with the roles {', '.join(EVAL_SETS)}"),
]


class LastPhase(NamedTuple):
    """The training of the last task."""

    rows: NDArray[np.int64]
    """Where its evaluations stand, from the one before it began on."""
    epochs: Floats
    """Its effective epochs, from 0 on."""
    task: int
    """Its place among the tasks as declared."""
    note: str = ""
    """What is to be said where it is not the task that was declared last; else empty."""


def last_phase(dataset: xr.Dataset, normal: str, tasks: Sequence[str], name: str) -> LastPhase:
    """Rows of the last task: each effective epoch above 0, and before them ONE row of epoch 0.

    While earlier tasks are trained the effective epoch stands at 0, so a run has many rows of epoch 0. The one
    that counts is the last: the network as it enters the last task. In a run of one task it is step 0.
    Epochs that occur twice are an error and are never averaged. Earlier tasks may be trained again and again; a last
    task that was trained before is an error.

    The recorded order counts: where the task that the evaluation set `normal` belongs to was trained last, though
    another was declared as the last one, its own epochs are those that count.
    """
    effective = np.asarray(dataset["effective_epoch"].values, np.float64)
    index = np.asarray(dataset["train_task_index"].values, np.int64)
    visits = training_visits(dataset)
    trained = tuple(visit.task for visit in visits)
    declared = len(tasks) - 1
    another = bool(trained) and trained[-1] != declared and _is_last(dataset, normal, trained, declared)
    if another or (trained and trained[-1] == declared):
        _refuse_visited_before(visits, dataset["step"].values, tasks, name)
    if another:
        return _another_last(dataset, effective, trained, tasks, name)
    joint = np.asarray(dataset["train_task"].values) == JOINT
    of_last = joint | (index == index.max())
    own = np.flatnonzero(of_last & (effective > 0))
    behind = np.setdiff1d(np.arange(own[0], index.size), own) if own.size else own
    if behind.size:
        named = np.asarray(dataset["train_task"].values)
        raise WaterjarError(
            f"{name}: '{named[behind[0]]}' is trained at step {dataset['step'].values[behind[0]]}, after "
            f"'{named[own[0]]}'. Rigidity is about the task that is trained last, and '{normal}' is not of that one: "
            f"expected its evaluation sets, by name, with {setting_as('rigidity.eval_sets', '{...}')}"
        )
    rows = np.concatenate([np.flatnonzero(effective == 0)[-1:], own])
    return LastPhase(rows, check_epochs(effective[rows], rows.size, f"{name}: effective_epoch"), declared)


def _is_last(dataset: xr.Dataset, normal: str, trained: Sequence[int], declared: int) -> bool:
    """Whether the task that was trained last is the one that is asked about.

    One that was declared behind it may still come where a run is not sealed.
    """
    owner = int(dataset["eval_task"].values[list(dataset["eval_set"].values).index(normal)])
    if declared in trained:
        return owner in (-1, trained[-1])
    return owner == trained[-1] and not np.asarray(dataset["is_open"].values).any()


def _refuse_visited_before(visits: Sequence[Visit], steps: NDArray[Any], tasks: Sequence[str], name: str) -> None:
    """Refuse a last task that was trained before: its second visit begins with what the first one taught."""
    earlier = [visit for visit in visits[:-1] if visit.task == visits[-1].task]
    if earlier:
        raise WaterjarError(
            f"{name}: '{tasks[visits[-1].task]}' is trained again from step {steps[visits[-1].rows[0]]} on; it was "
            f"trained from step {steps[earlier[0].rows[0]]} on before. Rigidity is about how the last task is learned "
            "for the first time, beside a baseline that begins from scratch, and visits are never merged: expected a "
            "last task that is trained once"
        )


def _another_last(
    dataset: xr.Dataset, effective: Floats, trained: Sequence[int], tasks: Sequence[str], name: str
) -> LastPhase:
    """The training of a task that was not declared as the last one."""
    own = dataset["train_task_index"].values == trained[-1]
    counted = bool((effective[own] > 0).any() and not (effective[~own] > 0).any())  # given with every evaluation
    epochs = effective if counted else np.where(own, dataset["epoch"].values, 0.0)
    within = np.flatnonzero(own & (epochs > 0))
    rows = np.concatenate([np.arange(len(epochs))[: within[0]][-1:], within]) if within.size else np.arange(1)
    never = "" if len(tasks) - 1 in trained else f"{tasks[-1]}, declared as the last task, was not trained"
    note = order_note(trained, tasks) or f"{never}: {tasks[trained[-1]]} counts as the last one"
    epochs = np.where(np.isin(np.arange(len(epochs)), within), epochs, 0.0)[rows]
    checked = check_epochs(epochs, rows.size, f"{name}: epoch of {tasks[trained[-1]]}")
    return LastPhase(rows, checked, trained[-1], note)


SHAPE = "it compares a network on a last task with a shortcut, shown and masked, with one that learned that task alone"
"""What a study is of that this family measures."""


def read_side(unit: Unit, settings: Any) -> Side:
    """Take the last task out of a cell's `performance`, by the family's settings."""
    name, dataset = unit.title, unit.load("performance")
    assert dataset is not None  # a unit without it is none of this family
    eval_sets = {**EVAL_SETS, **(settings.eval_sets or {})}
    variable, checkpoint = settings.variable, settings.checkpoint
    recorded = [str(label) for label in dataset["eval_set"].values]
    needed = [role for role in REQUIRED if role != "validation" or checkpoint == "best"]
    absent = [role for role in needed if eval_sets[role] not in recorded]
    if absent == needed:
        names = setting_as("rigidity.eval_sets", f"{{{absent[0]}: ...}}")
        raise WaterjarError(
            f"{SHAPE}, and {name} was not evaluated with and without a shortcut. If it was, under other names, say so "
            f"with {names}"
        )
    if variable not in dataset:
        known = [str(key) for key in dataset.data_vars if not str(key).endswith(REASON)]
        raise unknown_name(f"{name}: variable", variable, known, f"Choose one with {setting_as('rigidity.variable')}")
    if absent:
        sets = ", ".join(f"'{eval_sets[role]}' ({role})" for role in absent)
        last = (
            f" Without a validation set, {setting_as('rigidity.checkpoint', 'last')} does."
            if "validation" in absent
            else ""
        )
        names = setting_as("rigidity.eval_sets", f"{{{absent[0]}: ...}}")
        raise WaterjarError(
            f"{name} was not evaluated on {sets}, which rigidity needs; it has {', '.join(recorded)}. "
            f"If they are there under other names, say so with {names}.{last}"
        )
    tasks = unit.runs[0].attributes.get("tasks") or range(int(dataset["train_task_index"].values.max()) + 1)
    check_chance(settings.chance, len(tasks), name)
    rows, effective, task, note = last_phase(dataset, eval_sets["normal"], [str(one) for one in tasks], name)
    values: dict[str, Floats] = {}
    reasons: dict[str, Codes] = {}
    # the lab keeps weights by the plain accuracy on the validation set; the same rule gives the same checkpoint
    judge = "accuracy" if "accuracy" in dataset else variable
    order = ("eval_set", "repeat", "step")
    arrays = {name: dataset[name].transpose(*order).values for name in {variable, judge}}
    codes = {name: reasons_of(dataset, name).transpose(*order).values for name in {variable, judge}}
    for role, label in eval_sets.items():
        shape = (dataset.sizes["repeat"], rows.size)
        values[role], reasons[role] = np.full(shape, np.nan), np.full(shape, NOT_RECORDED, np.uint8)
        chosen = judge if role == "validation" else variable
        if label in recorded and effective[-1] > 0:
            place = recorded.index(label)
            values[role] = arrays[chosen][place][:, rows].astype(np.float64)
            reasons[role] = codes[chosen][place][:, rows].astype(np.uint8)
            check_accuracies(values[role], f"{name}: {chosen} on {label}")
    steps = np.asarray(dataset["step"].values, np.int64)[rows]
    seeds = np.atleast_1d(np.asarray(dataset["seed"].values, np.int64))
    trained = np.unique(np.asarray(dataset["train_task_index"].values, np.int64)[rows[effective > 0]])
    guessing = guessing_of(unit, dataset, eval_sets, settings, task)
    return Side(name, seeds, effective, steps, values, reasons, trained, guessing, note)


def for_seeds(side: Side, seeds: NDArray[np.int64]) -> Side:
    """The same cell, its repeats in the order of `seeds`; of those it lacks there is `no_run`."""
    place = {int(seed): i for i, seed in enumerate(side.seeds)}
    rows = np.array([place.get(int(seed), -1) for seed in seeds])
    there = (rows >= 0)[:, None]
    return replace(
        side,
        seeds=seeds,
        values={role: np.where(there, values[rows], np.nan) for role, values in side.values.items()},
        reasons={role: np.where(there, codes[rows], NO_RUN).astype(np.uint8) for role, codes in side.reasons.items()},
    )


def checkpoint_rows(side: Side, rule: str) -> tuple[NDArray[np.int64], Codes]:
    """(repeat,): the row of each seed's checkpoint, -1 where there is none; and why there is none.

    `best`: the highest validation accuracy, the first of equals; `last`: the last evaluation. The evaluation before
    the task is no checkpoint of it. A run that ended before its cell's budget has none: it would be compared at
    another age.
    """
    within = np.flatnonzero(side.epochs > 0)
    if within.size == 0:
        return np.full(side.seeds.size, -1), np.full(side.seeds.size, NOT_RECORDED, np.uint8)
    validation = side.values["validation"][:, within]
    known = ~np.isnan(validation)
    codes = np.where(known.any(1), 0, side.reasons["validation"][:, within[-1]]).astype(np.uint8)
    rows = within[np.where(known, validation, -np.inf).argmax(1)]
    if rule == "last":
        rows, codes = np.full(side.seeds.size, within[-1]), np.zeros(side.seeds.size, np.uint8)
    ended = (side.reasons["normal"][:, within] == RUN_ENDED).any(1)
    codes = np.where(ended, RUN_ENDED, codes).astype(np.uint8)
    return np.where(codes > 0, -1, rows), codes
