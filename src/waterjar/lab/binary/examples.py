"""Single examples on request: which they are, and what the learner made of each at an evaluation.

All test images of every task, and as `train` a fixed choice of the training images of each. Every repeat has tasks of
its own, so an example stands for another image in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.lab.binary.class_tasks import ClassTasks, Rows, labels_of
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.counter_hash import fixed_choice
from waterjar.run.examples import judge_examples
from waterjar.run.recorder import Recorder
from waterjar.run.schema import TRAIN

_GROUP = "examples/"


def train_examples_of(tasks: ClassTasks, config: BinaryConfig) -> int:
    """Training images of each task that the learner is asked."""
    return min(config.recording.train_examples, tasks.n_train) if config.recording.examples else 0


def train_example_rows(tasks: ClassTasks, config: BinaryConfig, members: Sequence[int]) -> tuple[Rows, Rows]:
    """(repeat, example): rows of the train split, task after task, and their labels."""
    count, index = train_examples_of(tasks, config), np.asarray(tasks.data.train_index)
    every = labels_of(tasks.n_train, config.tasks.classes_per_task)
    rows: list[Rows] = []
    labels: list[Rows] = []
    for member in members:
        own, told = [], []
        for images in tasks.train(member):
            places = fixed_choice(np.arange(len(images)), index[images], count, "train examples")
            own.append(images[places])
            told.append(every[places])
        rows.append(np.concatenate(own))
        labels.append(np.concatenate(told))
    return np.stack(rows), np.stack(labels)


def judge_some(logits: NDArray[np.float64], labels: Rows) -> dict[str, NDArray[Any]]:
    """correct and margin (repeat, some), of logits (repeat, some, class)."""
    return {name: found[TRAIN] for name, found in judge_examples({TRAIN: logits}, {TRAIN: labels}).items()}


def examples_by_set(found: dict[str, NDArray[Any]], tasks: ClassTasks) -> dict[str, Any]:
    """Taken out of what groups found: the group examples as a recorder takes it; nothing where none are recorded."""
    made = {
        name.removeprefix(_GROUP): _by_set(found.pop(name).T, tasks) for name in list(found) if name.startswith(_GROUP)
    }
    return {"examples": made} if made else {}


def _by_set(values: NDArray[Any], tasks: ClassTasks) -> dict[str, NDArray[Any]]:
    """(repeat, example) of all sets, one after the other -> set -> its own."""
    *own, train = np.split(values, [tasks.n_test * (task + 1) for task in range(len(tasks.names))], axis=1)
    sets = dict(zip(tasks.names, own, strict=True))
    return {**sets, TRAIN: train} if train.shape[1] else sets


def describe_examples(recorder: Recorder, tasks: ClassTasks, config: BinaryConfig) -> None:
    """Record once which examples they are, if any are wanted."""
    if not config.recording.examples:
        return
    members = range(len(tasks.classes))
    rows, labels = train_example_rows(tasks, config, members)
    each, number = train_examples_of(tasks, config), config.tasks.number
    tested = np.stack([tasks.test(member).reshape(-1) for member in members])
    told = np.tile(labels_of(tasks.n_test, config.tasks.classes_per_task), (len(members), number))
    of_task = np.concatenate([np.repeat(np.arange(number), tasks.n_test), np.repeat(np.arange(number), each)])
    ids = (np.asarray(tasks.data.test_index)[tested], np.asarray(tasks.data.train_index)[rows])
    about = {
        "label": np.concatenate([told, labels], axis=1),
        "sample_index": np.concatenate(ids, axis=1),
        "task": np.tile(of_task, (len(members), 1)),
    }
    recorder.once("examples", **{name: _by_set(values, tasks) for name, values in about.items()})
