"""Small studies of somebody's own loop, as complete or incomplete as loops are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import waterjar

TASKS = ["a", "b", "c"]


def accuracy(method: str, at: int, task: int, epoch: int, rng: np.random.Generator) -> float:
    """Of a task while the `at`-th is trained."""
    if task == at:
        return min(1.0, 0.5 + 0.12 * epoch)
    return (0.9 if method == "replay" else 0.1) * (task < at) + 0.02 * rng.random()


def study(
    folder: Path,
    *,
    methods: Sequence[str] = ("naive", "replay"),
    epochs: Callable[[str, int], int] = lambda method, seed: 3,
    config: Callable[[str, int], dict[str, Any]] = lambda method, seed: {},
    features: bool = False,
    labelled: bool = True,
    **said: Any,
) -> Path:
    """Record three seeds of every method; what is `said` of the runs replaces what a careful user would have said."""
    for method in methods:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            options = {"eval_sets": TASKS, "tasks": TASKS, "classes": list("0123"), "seeds": [seed], **said}
            options = {key: value for key, value in options.items() if value is not None}
            with waterjar.Recorder(
                folder / f"{method}-{seed}",
                {"method": method, **config(method, seed)},
                **{"provenance": False, "summary": False, **options},
            ) as recorder:
                sets = list(options["eval_sets"])
                if features and labelled:
                    recorder.once("probe_samples", label={name: np.arange(20) % 2 for name in sets})
                for at, trained in enumerate(TASKS):
                    for epoch in range(at > 0, epochs(method, seed) + 1):
                        right = {name: accuracy(method, at, i, epoch, rng) for i, name in enumerate(sets)}
                        shown = {name: rng.normal(size=(1, 20, 16)).clip(0) for name in sets}
                        recorder.log(
                            epoch=epoch,
                            train_task=trained,
                            performance={"accuracy": right, "loss": dict.fromkeys(sets, 2.0 - 0.1 * epoch)},
                            snapshot={"features": {"hidden": shown}} if features else None,
                        )
    return folder
