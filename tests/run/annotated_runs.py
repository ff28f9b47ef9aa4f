"""Runs that are recorded with tasks of their sets, classes and labels, or without any of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import waterjar
from waterjar.run.annotations import FILE

TASKS, SETS, CLASSES = ["A", "B"], ["a", "b"], ["x", "y"]
SAMPLES = 24


def labels(seed: int = 0) -> np.ndarray[Any, Any]:
    """(eval_set, sample)."""
    return np.random.default_rng(seed + 100).integers(0, 2, (len(SETS), SAMPLES))


def record(path: Path, *, whole: bool, seed: int = 0, method: str = "m", **more: Any) -> Path:
    """A run of two tasks, with tasks of its sets, classes and labels, or without any of them."""
    rng = np.random.default_rng(seed)
    told = {"eval_sets": {"a": "A", "b": "B"}, "classes": CLASSES} if whole else {"eval_sets": SETS}
    options = {"seeds": [seed], "tasks": TASKS, "provenance": False, "summary": False, **told, **more}
    with waterjar.Recorder(path, {"method": method, "seed": seed}, **options) as recorder:
        if whole:
            recorder.once("probe_samples", label=labels(seed)[None])
        for task in TASKS:
            for epoch in range(4):
                accuracy = rng.uniform(0.3, 0.95, (2, 1))
                recorder.log(
                    train_task=task,
                    epoch=epoch,
                    performance={"accuracy": accuracy, "class_accuracy": rng.random((2, 2, 1))},
                    expert={"accuracy": accuracy},
                    snapshot={"features": {"fc1": rng.normal(size=(1, 2, SAMPLES, 6)) + labels(seed)[None, ..., None]}},
                )
    return path


def files_of(run: Path) -> dict[str, str]:
    """Every file of a run but its annotations -> SHA-256."""
    found = sorted(one for one in run.rglob("*") if one.is_file() and one != run / FILE)
    return {str(one.relative_to(run)): hashlib.sha256(one.read_bytes()).hexdigest() for one in found}
