"""What a run needs so that this family has something to measure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.continual._settings import variable_read
from waterjar.diagnose.eval_sets import choose_eval_sets
from waterjar.diagnose.feeds import Lack, how_to_record
from waterjar.errors import WaterjarError
from waterjar.run.reader import Run

_ABOVE_CHANCE = ("forgetting_rate", "forward_transfer", "max_dip", "remembering", "zero_shot")
"""Metrics of accuracies above chance."""
_BESIDE_EXPERT = ("forward_transfer", "intransigence")
OF_SEVERAL = (
    "backward_transfer", "forgetting", "forgetting_rate", "forward_transfer_gem", "max_dip", "min_accuracy",
    "remembering", "zero_shot",
)  # fmt: skip
"""Metrics that ask for a second task."""
_OVER_ALL = (
    "average_accuracy", "average_anytime_accuracy", "forward_transfer_gem", "learning_accuracy", "worst_case_accuracy"
)  # fmt: skip
"""Metrics over all tasks that were trained."""


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """Accuracies, a task for the eval sets, and what chance is."""
    read, tasks = variable_read(settings), [str(task) for task in run.attributes["tasks"]]
    sets: dict[str, int] = run.attributes["eval_sets"]
    if f"performance/{read}" not in run.nodes:
        other = "performance/loss" in run.nodes and read != "loss"
        loss = " (or read the loss: --set continual.metric_type=loss)" if other else ""
        yield Lack(f"no performance/{read}", how_to_record(f"performance/{read}") + loss)
        return
    if all(task < 0 for task in sets.values()):
        yield _no_task(sets, tasks)
        return
    try:
        chosen = choose_eval_sets(sets, range(len(tasks)), settings.eval_sets, "the run", "continual")
    except WaterjarError as error:
        yield Lack(str(error), "")
        return
    unseen = [tasks[task] for task, name in chosen.items() if not name]
    once_each = _trained_once_each(run)
    if unseen:
        free = next((name for name, task in sets.items() if task < 0), "")
        yield Lack(
            f"task {', '.join(unseen)} has no eval set, and where it is trained no mean over tasks is one over all",
            f'Recorder(..., eval_sets={{"{free or "test"}": "{unseen[0]}", ...}})',
            _OVER_ALL if once_each else (),
            f"--eval-task {shlex.quote(f'{free}={unseen[0]}')}" if free else "",
        )
    without: set[str] = set()
    if run.attributes["progress"].get("visit", 0) == 0:
        without |= set(OF_SEVERAL)
        yield Lack(
            "one task was trained, after which nothing can be forgotten or carried over",
            'Recorder(..., tasks=["a", "b"], eval_sets={"test_a": "a", "test_b": "b"})',
            OF_SEVERAL,
            is_telling=False,
        )
    if f"expert/{read}" not in run.nodes:
        without |= set(_BESIDE_EXPERT)
        yield Lack(f"no expert/{read}", how_to_record(f"expert/{read}"), _BESIDE_EXPERT, is_telling=False)
    known = settings.chance is not None or run.attributes.get("chance") is not None or run.attributes.get("classes")
    unknown = settings.chance is None and (read == "task_accuracy" or (read != "loss" and not known))
    above = tuple(name for name in _ABOVE_CHANCE if name not in without)  # what chance alone keeps from a value
    if unknown and above:
        of_task = read == "task_accuracy"
        yield Lack(
            "chance is unknown" + (" of task_accuracy, where only a task's own classes compete" if of_task else ""),
            "--set chance=0.5 (of two classes)" if of_task else 'Recorder(..., classes=["a", "b"])',
            above,
            "" if of_task else "--classes a,b",
        )
    if "forward_transfer_gem" not in without and _starts_in_training(run):
        line = how_to_record(f"performance/{read}").replace("...", "epoch=0, ...")
        yield Lack(
            "it is over the accuracy before any training, and nothing was evaluated at epoch 0",
            f"{line} before the first epoch of training",
            ("forward_transfer_gem",),
        )


def _starts_in_training(run: Run) -> bool:
    """Whether the first evaluation came after some training."""
    key = "performance/epoch"
    return key in run.nodes and run.nodes[key]["shape"][0] > 0 and bool(run.array(key, [(0, 1)])[0] > 0)


def _trained_once_each(run: Run) -> bool:
    """Whether every task was trained, once, in the order of their declaration, as far as the last step tells."""
    at, tasks = run.attributes["progress"], len(run.attributes["tasks"])
    return bool(at.get("visit") == at.get("train_task_index") == tasks - 1)


def _no_task(sets: dict[str, int], tasks: list[str]) -> Lack:
    if len(tasks) == 1:
        return Lack(
            f"no eval set belongs to a task, and there is one task, '{tasks[0]}'",
            'Recorder(..., tasks=["a", "b"], eval_sets={"test_a": "a", "test_b": "b"})',
            annotate=f"--eval-task {shlex.quote(f'{next(iter(sets))}={tasks[0]}')}" if sets else "",
        )
    pairs = list(zip(sets, tasks, strict=False))
    code = ", ".join(f'"{name}": "{task}"' for name, task in pairs[:2]) + (", ..." if len(pairs) > 2 else "")
    options = " ".join(f"--eval-task {shlex.quote(f'{name}={task}')}" for name, task in pairs[:2])
    return Lack(
        "no eval set belongs to a task (sets and tasks are paired here by their order: say which it is)",
        f"Recorder(..., eval_sets={{{code}}})",
        annotate=options + (" ..." if len(pairs) > 2 else ""),
    )
