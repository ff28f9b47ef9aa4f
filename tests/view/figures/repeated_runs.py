"""Runs with several repeats in each, as the binary laboratory writes them, and the arrays they were written from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import waterjar

EPOCHS = 3
"""Evaluations of a task: before its training, and after each of two epochs."""
LAYERS = {"early": 6, "late": 4}


@dataclass(frozen=True)
class Written:
    """What went into a run."""

    accuracy: np.ndarray
    """(task in training, epoch, eval task, repeat)."""
    expert: np.ndarray
    """(task, epoch, repeat)."""
    features: dict[str, np.ndarray]
    """layer -> (task, epoch, repeat, eval task, sample, unit)."""
    weights: np.ndarray
    """(task, epoch, repeat, 3, 5)."""
    seeds: list[int]


def repeated_run(
    path: Path,
    method: str,
    seeds: list[int],
    *,
    tasks: int = 3,
    data: object = "toys",
    number: int = 0,
    at_chance: int | None = None,
    features: bool = True,
    **settings: object,
) -> Written:
    """One run of several tasks and repeats; the repeat `at_chance` never leaves it."""
    rng = np.random.default_rng([number, len(seeds)])
    n = len(seeds)
    names = [f"task_{t:03d}" for t in range(tasks)]
    accuracy = rng.uniform(0.55, 0.95, (tasks, EPOCHS, tasks, n))
    expert = rng.uniform(0.6, 0.9, (tasks, EPOCHS, n))
    if at_chance is not None:
        accuracy[..., at_chance] = expert[..., at_chance] = 0.5
    hidden = {
        layer: np.abs(rng.normal(size=(tasks, EPOCHS, n, tasks, 8, units))) + 0.1 for layer, units in LAYERS.items()
    }
    weights = rng.normal(size=(tasks, EPOCHS, n, 3, 5))
    config = {"method": method, "kind": "binary", "data": data, **settings}
    with waterjar.Recorder(
        path, config, seeds=seeds, eval_sets={name: t for t, name in enumerate(names)}, tasks=names,
        classes=["0", "1"], provenance=False,
    ) as recorder:  # fmt: skip
        pairs = np.tile(np.arange(2 * tasks).reshape(tasks, 2), (n, 1, 1))
        recorder.once("probe_samples", label=np.tile(np.repeat([0, 1], 4), (n, tasks, 1)), task_class=pairs)
        for t, name in enumerate(names):
            for e in range(EPOCHS):
                of_expert = np.full((tasks, n), np.nan)
                of_expert[t] = expert[t, e]
                shot: dict[str, object] = {"weights": {"w": weights[t, e] if n > 1 else weights[t, e, 0]}}
                if features:
                    shot["features"] = {k: v[t, e] if n > 1 else v[t, e, 0] for k, v in hidden.items()}
                recorder.log(
                    train_task=name,
                    epoch=e,
                    performance={"accuracy": accuracy[t, e]},
                    expert={"accuracy": of_expert},
                    resources={"seconds": 1.0, "flops": 1e9, "images": 10},
                    snapshot=shot,
                )
    return Written(accuracy, expert, hidden, weights, seeds)
