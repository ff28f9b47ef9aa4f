"""Synthetic runs in the shape that the binary-task laboratory writes, and a layout written by somebody else."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

import waterjar


def record(
    path: Path,
    *,
    tasks: int = 3,
    repeats: int = 2,
    logged: int = 2,
    samples: int = 4,
    units: int = 3,
    classes: int = 2,
    frequency: float = 5,
    seed: int = 0,
    features: bool = True,
    weights: bool = True,
    expert: bool = True,
    train: bool = True,
    loss: bool = True,
    labels: bool = True,
    initial: str = "apart",
    layers: tuple[str, ...] = ("penultimate",),
    probe_tasks: list[int] | None = None,
    dtype: str = "float32",
    zero_each_task: bool = False,
    engine: str | None = None,
    **settings: Any,
) -> waterjar.Run:
    """One run: `tasks` tasks, step 0, then `logged` evaluations of each task."""
    rng = np.random.default_rng(seed)
    names = [f"task_{t:03d}" for t in range(tasks)]
    probes = [names[t] for t in (range(tasks) if probe_tasks is None else probe_tasks)]
    config: dict[str, Any] = {
        "kind": "binary",
        "data": {"name": "glyphs"},
        "learner": {"name": "sl", "settings": {"lr": 0.1}},
        "options": [{"name": "replay"}],
        "training": {"epochs": logged * frequency, "log_frequency": frequency},
    }
    if engine is not None:
        config["engine"] = engine
    options: dict[str, Any] = {
        "seeds": [11 + 7 * r for r in range(repeats)],
        "eval_sets": {name: t for t, name in enumerate(names)},
        "tasks": names,
        "classes": [str(k) for k in range(classes)],
        "probe_sets": probes,
        "data_fingerprint": "abc",
        **settings,
    }

    def tensors() -> dict[str, np.ndarray]:
        lead = (repeats,) if repeats > 1 else ()
        return {
            "w": rng.standard_normal((*lead, 2, 3)).astype(dtype),
            "b": rng.standard_normal((*lead, 1)).astype(dtype),
        }

    recorder = waterjar.Recorder(path, config, **options)
    pairs = [rng.permutation(tasks * classes + 1)[: tasks * classes].reshape(tasks, classes) for _ in range(repeats)]
    recorder.once("probe_samples", task_class=np.stack(pairs))
    if labels:
        even = np.broadcast_to(np.arange(samples) % classes, (repeats, len(probes), samples))
        recorder.once("probe_samples", label=rng.permuted(even, axis=-1))
    if weights and initial != "none":
        first = tensors()
        alike = {k: np.stack([v[0]] * repeats) if repeats > 1 else v for k, v in first.items()}
        recorder.once("weights", initial=alike if initial == "alike" else first)
    moments = [(0, 0.0), *((t, frequency * (i + 1)) for t in range(tasks) for i in range(logged))]
    if zero_each_task:
        moments = [(t, frequency * i) for t in range(tasks) for i in range(logged + 1)]
    for step, (task, epoch) in enumerate(moments):
        shot: dict[str, Any] = {}
        if features:
            shape = (repeats, len(probes), samples, units)
            shot["features"] = {layer: rng.standard_normal(shape).astype(dtype) for layer in layers}
        if weights:
            shot["weights"] = tensors()
        performance = {"accuracy": rng.random((tasks, repeats))}
        own = {"accuracy": {names[task]: rng.random(repeats)}}
        if loss:
            performance["loss"] = rng.random((tasks, repeats)) * 3
            own["loss"] = {names[task]: rng.random(repeats)}
        fresh: dict[str, Any] = {**own, "train_accuracy": rng.random(repeats), "train_loss": rng.random(repeats)}
        trained = {"accuracy": rng.random(repeats), "loss": rng.random(repeats)}
        recorder.log(
            train_task=task,
            epoch=epoch,
            performance=performance,
            train=trained if train and step and epoch else None,
            expert=fresh if expert and epoch else None,
            snapshot=shot,
        )
    recorder.close()
    return waterjar.open_run(path)


def foreign(
    folder: Path, *, tasks: int = 3, repeats: int = 2, logged: int = 4, shape: tuple[int, int] = (5, 3)
) -> Path:
    """A layout as another's scripts write it: plain numpy and pickle, and none of our notes."""
    rng = np.random.default_rng(1)
    samples, units = shape
    labels = rng.integers(0, 2, (tasks, samples, repeats)).astype(np.int32)
    folder.mkdir(parents=True)
    np.save(folder / "init_weights.npy", rng.standard_normal(7).astype(np.float32))
    for t in range(tasks):
        place = folder / f"task_{t:03d}"
        place.mkdir()
        np.save(place / "representations.npy", rng.random((logged, repeats, tasks, samples, units), np.float32))
        np.save(place / "weights.npy", rng.random((logged, repeats, 7), np.float32))
        np.save(place / "binary_labels.npy", labels)
        keys = ("test_acc", "test_loss")
        metrics = {key: rng.random((logged, repeats, tasks)).astype(np.float32) for key in keys}
        metrics |= {key: rng.random((logged, repeats)) for key in ("train_acc", "train_loss")}
        (place / "metrics.pkl").write_bytes(pickle.dumps(metrics))
        own = {key: rng.random((logged, repeats)) for key in (*keys, "train_acc", "train_loss")}
        (place / "expert_metrics.pkl").write_bytes(pickle.dumps(own))
        about = {
            "task_id": t,
            "class_pairs": [[2 * t, 2 * t + 1]] * repeats,
            "config": {"log_frequency": 10, "seed": 42},
        }
        (place / "metadata.json").write_text(json.dumps(about))
    return folder
