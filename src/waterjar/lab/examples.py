"""Single examples on request: which they are, and what the network made of each at an evaluation.

All evaluation sets, and as `train` a fixed choice of the training images of each task. These are shown as the task has
them, with the shortcut where they carry it, but not augmented; those of both tasks are there in every scenario, also
of a task that it does not train, so that an example stands in the same place whoever is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from waterjar.lab.config import Recording
from waterjar.lab.counter_hash import fixed_choice
from waterjar.lab.evaluation import EVAL_SETS, UNION, EvaluationSet, Tally, evaluation_sets
from waterjar.lab.tasks import TASKS, TwoTasks
from waterjar.run.examples import judge_examples
from waterjar.run.recorder import Recorder
from waterjar.run.schema import TRAIN

STATIC_BYTES, STEP_BYTES, LOGIT_BYTES = 3 * 8, 1 + 2, 4
"""Of an example: its label, index and task; at every step whether it is right, and its margin; and a logit of it."""


def train_sets(tasks: TwoTasks, wanted: Recording) -> list[EvaluationSet]:
    """The training images of each task that are looked at; none where none are wanted."""
    if not (wanted.examples and wanted.train_examples):
        return []
    found = []
    for task, name in enumerate(TASKS):
        rows = tasks.train_rows[name]
        chosen = fixed_choice(rows, tasks.ids("train", rows), wanted.train_examples, "train examples")
        found.append(EvaluationSet(f"{TRAIN}_{name}", task, "train", chosen, "planted"))
    return found


def shown_sets(tasks: TwoTasks, wanted: Recording) -> dict[str, list[EvaluationSet]]:
    """Set of /examples -> the evaluation sets that it is made of, in their order."""
    known = {one.name: [one] for one in evaluation_sets(tasks)}
    known["t2_all_normal"] = [known[name][0] for name in UNION]
    found = {name: known[name] for name in EVAL_SETS}
    train = train_sets(tasks, wanted)
    return {**found, TRAIN: train} if train else found


def describe_examples(recorder: Recorder, tasks: TwoTasks, wanted: Recording) -> None:
    """Record once which examples they are, if any are wanted."""
    if not wanted.examples:
        return
    about: dict[str, dict[str, Any]] = {"label": {}, "sample_index": {}, "task": {}}
    for name, parts in shown_sets(tasks, wanted).items():
        about["label"][name] = np.concatenate([tasks.labels[part.split][part.rows] for part in parts])[None]
        about["sample_index"][name] = np.concatenate([tasks.ids(part.split, part.rows) for part in parts])[None]
        about["task"][name] = np.repeat([part.task for part in parts], [len(part.rows) for part in parts])[None]
    recorder.once("examples", **about)


def examples_of(tallies: Mapping[str, Tally], wanted: Recording) -> dict[str, Any] | None:
    """What a recorder takes, of tallies that have kept their logits; None where none are wanted."""
    if not wanted.examples:
        return None
    logits = _logits(tallies)
    return judge_examples(logits, {name: np.concatenate(tallies[name].labels)[None] for name in logits})


def outputs_of(tallies: Mapping[str, Tally], wanted: Recording) -> dict[str, Any]:
    """What a snapshot has of the logits of all examples; nothing where none are wanted."""
    return {"outputs": {"logits": _logits(tallies)}} if wanted.outputs else {}


def _logits(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    names = [*EVAL_SETS, TRAIN] if TRAIN in tallies else list(EVAL_SETS)
    return {name: np.concatenate(tallies[name].logits)[None] for name in names}
