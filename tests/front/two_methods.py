"""A small continual study: two methods, three seeds, two tasks, all accuracies known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import waterjar

AFTER = {
    "naive": {1: [0.25, 0.75], 2: [0.125, 0.875], 3: [0.375, 0.5]},
    "replay": {1: [0.5, 0.75], 2: [0.625, 0.875], 3: [0.5, 0.625]},
}
"""method -> seed -> accuracy of both tasks at the end."""
LEARNED = 0.875
"""Accuracy of the first task when the second begins."""


def write(folder: Path, after: dict[str, dict[int, list[float]]] = AFTER) -> Path:
    for method, by_seed in after.items():
        for seed, ends in by_seed.items():
            with waterjar.Recorder(
                folder / f"{len(list(folder.glob('*')))}",
                {"method": method},
                seeds=[seed],
                eval_sets={"a": 0, "b": 1},
                tasks=["a", "b"],
                classes=["p", "q"],
                provenance=False,
            ) as recorder:
                for task, epoch, values in (("a", 0, [0.5, 0.5]), ("a", 1, [LEARNED, 0.5]), ("b", 1, ends)):
                    recorder.log(train_task=task, epoch=epoch, performance={"accuracy": np.array(values)})
    return folder
