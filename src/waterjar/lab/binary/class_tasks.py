"""Which classes each repeat tells apart in each task, and which images those are.

Every repeat has a permutation of the classes of its own, cut into tasks: no class is in two tasks of one repeat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab.binary.config import BinaryConfig, Tasks
from waterjar.lab.counter_hash import fixed_choice
from waterjar.lab.data import ImageData

Rows = NDArray[np.int64]
_CLASSES = 1  # spawn key of a repeat's seed


@dataclass(frozen=True, eq=False)
class ClassTasks:
    """The tasks of all repeats over one data set."""

    data: ImageData
    classes: Rows
    """(repeat, task, label): the fine class behind each label."""
    pool: Rows
    """The classes that were drawn from, sorted."""
    train_rows: Rows
    """(pool, sample): rows of the train split of each class of the pool, sorted; all classes have as many."""
    test_rows: Rows

    @property
    def n_train(self) -> int:
        """Train images of a task."""
        return int(self.classes.shape[2] * self.train_rows.shape[1])

    @property
    def n_test(self) -> int:
        """Test images of a task."""
        return int(self.classes.shape[2] * self.test_rows.shape[1])

    @property
    def names(self) -> list[str]:
        """Of the tasks, and of their evaluation sets: task_000, task_001 ..."""
        return [task_name(task) for task in range(self.classes.shape[1])]

    def train(self, repeat: int) -> Rows:
        """(task, sample): rows of the train images of every task of a repeat, label after label."""
        return self._label_by_label(self.train_rows, repeat)

    def test(self, repeat: int) -> Rows:
        """(task, sample): rows of the test images of every task of a repeat, label after label."""
        return self._label_by_label(self.test_rows, repeat)

    def _label_by_label(self, rows: Rows, repeat: int) -> Rows:
        places = np.searchsorted(self.pool, self.classes[repeat])
        found: Rows = rows[places].reshape(len(places), -1)
        return found


def task_name(task: int) -> str:
    """What a task and its evaluation set are called.

    >>> task_name(7)
    'task_007'
    """
    return f"task_{task:03d}"


def labels_of(samples: int, classes: int) -> Rows:
    """Labels of a task's images, as they stand in `ClassTasks.train` and `ClassTasks.test`.

    >>> labels_of(6, 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(classes), samples // classes)


def draw_tasks(data: ImageData, config: BinaryConfig) -> ClassTasks:
    """Lay the tasks out over a data set; what does not fit it is an error."""
    tasks = config.tasks
    pool = _pool(data, tasks)
    needed = tasks.number * tasks.classes_per_task
    if tasks.classes_per_task > len(pool):
        raise WaterjarError(
            f"tasks.classes_per_task is {tasks.classes_per_task}, but {data.name} has {len(pool)} classes to draw from"
        )
    if needed > len(pool):
        raise WaterjarError(
            f"{tasks.number} tasks of {tasks.classes_per_task} classes need {needed} classes, but {data.name} has "
            f"{len(pool)} to draw from: expected at most {len(pool) // tasks.classes_per_task} tasks"
        )
    classes = np.stack(
        [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_CLASSES,))).permutation(pool)[:needed]
            for seed in config.repeat_seeds
        ]
    )
    train = _rows_of(data, "train", pool, tasks.train_per_class)
    test = _rows_of(data, "test", pool, tasks.test_per_class)
    shape = (len(classes), tasks.number, tasks.classes_per_task)
    return ClassTasks(data, classes.reshape(shape), pool, train, test)


def _pool(data: ImageData, tasks: Tasks) -> Rows:
    present = data.present_classes
    if tasks.classes is None:
        return present
    for fine in tasks.classes:
        if fine not in present:
            raise unknown_name(f"tasks.classes: class of {data.name} with images", fine, present.tolist())
    return np.sort(np.array(tasks.classes, dtype=np.int64))


def _rows_of(data: ImageData, split: str, pool: Rows, wanted: int | None) -> Rows:
    """(pool, sample): as many of every class, because repeats that train at once have batches of one size."""
    labels = data.train_labels if split == "train" else data.test_labels
    index = np.asarray(data.train_index if split == "train" else data.test_index)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], pool, side="left")
    stops = np.searchsorted(labels[order], pool, side="right")
    counts = stops - starts
    fewest = int(np.argmin(counts))
    least, name = int(counts[fewest]), data.class_names[pool[fewest]]
    if wanted is None and (counts != least).any():
        raise WaterjarError(
            f"the classes of {data.name} have {least} ('{name}') to {counts.max()} {split} images, and repeats that "
            f"train at once need as many of each: set tasks.{split}_per_class to {least} or fewer"
        )
    if wanted is not None and wanted > least:
        raise WaterjarError(
            f"tasks.{split}_per_class is {wanted}, but class '{name}' has {least} {split} images: expected at most "
            f"{least}, or leave such classes out with tasks.classes"
        )
    rows = []
    for start, stop in zip(starts, stops, strict=True):
        own = order[start:stop].astype(np.int64)
        if wanted is not None:
            own = fixed_choice(own, index[own], wanted, "samples of a class")
        rows.append(np.sort(own))
    return np.stack(rows)
