"""The two tasks of the experiment over one data set: who belongs where, under which label, with which shortcut.

Rows are always rows of the whole data set and sample ids always those of the original one: nothing here counts
within a task, so that nothing can be mixed up between tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab import shortcuts
from waterjar.lab.config import RunConfig
from waterjar.lab.counter_hash import hash_words
from waterjar.lab.data import ImageData
from waterjar.lab.shortcuts import Shortcut, selected

Rows = NDArray[np.int64]
TASKS = ("t1", "t2")


@dataclass(frozen=True, eq=False)
class TwoTasks:
    """A data set seen as T1 and T2. Labels are positions in `classes`: T1 classes first, then T2."""

    data: ImageData
    shortcut: Shortcut
    classes: Rows
    """(label,) fine class behind each label."""
    labels: dict[str, Rows]
    """split -> (row,) label of each image, -1 for classes in neither task."""
    train_rows: dict[str, Rows]
    """task -> rows of the train split that are trained on."""
    validation_rows: Rows
    """Rows of the train split held out of T2."""
    n_t1: int
    """Number of T1 classes: labels below it belong to T1."""
    is_shortcut: NDArray[np.bool_]
    """(label,) whether the class carries the shortcut."""
    carries: dict[str, NDArray[np.bool_]]
    """split -> (row,) whether the image carries the shortcut: at the train rate in train, the eval rate in test."""

    @property
    def n_classes(self) -> int:
        """Width of the head, the same in every scenario."""
        return len(self.classes)

    @property
    def class_names(self) -> list[str]:
        """Names in the order of labels; superclass and class, since class names may repeat."""
        data = self.data
        return [f"{data.superclass_names[data.class_superclass[c]]}/{data.class_names[c]}" for c in self.classes]

    def ids(self, split: str, rows: Rows) -> Rows:
        """The sample ids of some rows of a split."""
        found: Rows = np.asarray(self.data.train_index if split == "train" else self.data.test_index)[rows]
        return found

    def task_labels(self, task: int) -> slice:
        """The labels that compete when the task is known."""
        return slice(0, self.n_t1) if task == 0 else slice(self.n_t1, self.n_classes)


def arrange(data: ImageData, config: RunConfig) -> TwoTasks:
    """Lay both tasks out over a data set."""
    tasks = config.tasks
    t1, t2 = data.classes_of(tasks.t1_superclasses), data.classes_of(tasks.t2_superclasses)
    classes = np.concatenate([t1, t2])
    label_of = np.full(len(data.class_names), -1, dtype=np.int64)
    label_of[classes] = np.arange(len(classes))
    labels = {"train": label_of[data.train_labels], "test": label_of[data.test_labels]}
    shortcut = shortcuts.build(config.shortcut.kind, data.image_size, **config.shortcut.settings)
    is_shortcut = np.isin(data.class_superclass[classes], tasks.shortcut_superclasses)

    held_out = _held_out(data, labels["train"], len(t1), tasks.validation)
    of_t1 = (labels["train"] >= 0) & (labels["train"] < len(t1))
    of_t2 = labels["train"] >= len(t1)
    rows = {"t1": np.flatnonzero(of_t1), "t2": np.flatnonzero(of_t2 & ~held_out)}
    index = {"train": np.asarray(data.train_index), "test": np.asarray(data.test_index)}
    rates = {"train": config.shortcut.rate, "test": config.shortcut.eval_rate}
    carries = {
        split: (labels[split] >= 0)
        & is_shortcut[labels[split]]
        & selected(shortcut, index[split], "train" if split == "train" else "test", rates[split])
        for split in ("train", "test")
    }
    return TwoTasks(
        data=data,
        shortcut=shortcut,
        classes=classes,
        labels=labels,
        train_rows=rows,
        validation_rows=np.flatnonzero(of_t2 & held_out),
        n_t1=len(t1),
        is_shortcut=is_shortcut,
        carries=carries,
    )


def _held_out(data: ImageData, labels: Rows, first: int, share: float) -> NDArray[np.bool_]:
    """Mark the share of each T2 class with the smallest hashes of their sample ids: the same for every seed."""
    held = np.zeros(len(labels), dtype=np.bool_)
    order = hash_words("validation", np.asarray(data.train_index))
    for label in range(first, int(labels.max()) + 1):
        rows = np.flatnonzero(labels == label)
        count = round(share * len(rows))
        if not 0 < count < len(rows):
            raise WaterjarError(
                f"class {data.class_names[data.train_labels[rows[0]]]} has {len(rows)} train images: a validation "
                f"share of {share} leaves none to hold out or none to train on"
            )
        held[rows[np.argsort(order[rows], kind="stable")[:count]]] = True
    return held
