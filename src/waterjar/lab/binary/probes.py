"""Which test images the recorded features are of: as many of every class as can be, the same ones all along."""

from __future__ import annotations

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.lab.binary.class_tasks import ClassTasks, Rows
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.counter_hash import fixed_choice


def probe_rows(tasks: ClassTasks, config: BinaryConfig, repeat: int) -> Rows:
    """(eval_set, sample): rows of the test split, label after label; of a class those with the smallest hashes."""
    each = _per_class(config)
    if max(each) > tasks.test_rows.shape[1]:
        raise WaterjarError(
            f"recording.samples is {config.recording.samples}, {max(each)} of a class, but there are "
            f"{tasks.test_rows.shape[1]} test images of each: expected at most {tasks.n_test}"
        )
    index = np.asarray(tasks.data.test_index)
    by_label = tasks.test(repeat).reshape(config.tasks.number, config.tasks.classes_per_task, -1)
    found: list[Rows] = []
    for task in config.probe_tasks:
        parts: list[Rows] = []
        for own, count in zip(by_label[task], each, strict=True):
            parts.append(fixed_choice(own, index[own], count, "probe samples"))
        found.append(np.concatenate(parts))
    return np.stack(found)


def probe_labels(config: BinaryConfig) -> Rows:
    """(sample,): labels of the probe samples of any task."""
    each = _per_class(config)
    return np.repeat(np.arange(len(each)), each)


def _per_class(config: BinaryConfig) -> list[int]:
    wanted, classes = config.recording.samples, config.tasks.classes_per_task
    return [wanted // classes + (label < wanted % classes) for label in range(classes)]
