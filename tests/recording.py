"""A small recorded run, and ways to look at one without waterjar."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

import waterjar


def record(path: Path, steps: int = 5, seed: int = 0, **settings: object) -> Path:
    """A sealed run with two eval sets, two tasks, training loss, features and weights."""
    rng = np.random.default_rng(seed)
    options = {"seeds": [seed], "eval_sets": {"a": 0, "b": 1}, "tasks": ["first", "second"], **settings}
    with waterjar.Recorder(path, {"learner": "sgd", "lr": 0.1}, **options) as recorder:
        for step in range(steps):
            task = "first" if step < steps // 2 else "second"
            epoch = step if task == "first" else step - steps // 2 + 1
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": rng.random(2), "loss": rng.random(2)},
                train={"loss": rng.random()} if step else None,
                snapshot={
                    "features": {"penultimate": rng.random((2, 4, 3), dtype=np.float32)},
                    "weights": {"w": rng.random((3, 2)), "b": rng.random(2)},
                },
            )
    return path


def content(path: Path) -> dict[str, str]:
    """Every file's hash, what depends on the clock left out: root, manifest, lock."""
    files = (f for f in path.rglob("*") if f.is_file() and ".waterjar" not in f.parts and f != path / "zarr.json")
    return {f.relative_to(path).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(files)}


def root_of(path: Path) -> dict[str, object]:
    return json.loads((path / "zarr.json").read_text())
