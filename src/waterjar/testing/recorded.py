"""A small study with everything that a family may read, recorded in seconds: metrics are tried on it."""

from __future__ import annotations

import functools
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from waterjar.run.examples import judge_examples
from waterjar.run.recorder import Recorder
from waterjar.run.study import Study, create_study, open_study
from waterjar.testing import robust_probes
from waterjar.testing.streams import COALITIONS, STREAMS, SmallStreams

SEEDS = (3, 1, 2)
_ROLES = (
    "shortcut_normal",
    "shortcut_masked",
    "shortcut_clean",
    "shortcut_random_mask",
    "nonshortcut_normal",
    "nonshortcut_masked",
    "nonshortcut_patched",
    "validation",
)
_SETS = {"t1_all": 0, "t2_all": 1, **{f"t2_{role}": 1 for role in _ROLES}}
_LAYERS = ("early", "penultimate")
_PROBES = ("sharpness", "random_label_epochs")
_EPOCHS, _CLASSES, _SAMPLES, _UNITS = 3, 3, 12, 64
MIDDLE = 2
"""The epoch of a task from which on a seed is broken in part."""


def small_study(
    folder: str | Path, *, seeds: Sequence[int] = SEEDS, broken: int | None = None, since: int = MIDDLE
) -> Study:
    """Record a baseline and a learner, a run per seed, with all that our families read.

    Two tasks, ten evaluation sets, single examples, experts, features of two layers with labels, weights, gradient
    norms, probes, those of robustness, too, resources and the streams of a collective. Of the seed `broken` every
    number from the epoch `since` of a task on is NaN.
    """
    shutil.copytree(Path(_recorded(tuple(seeds), broken, since).name, "study"), folder, dirs_exist_ok=True)
    return open_study(folder)


@functools.cache
def _recorded(seeds: tuple[int, ...], broken: int | None, since: int) -> tempfile.TemporaryDirectory[str]:
    """Recorded once in a process, and copied whenever it is asked for: that takes a tenth of the time."""
    folder = tempfile.TemporaryDirectory(prefix="waterjar-small-")
    place = create_study(Path(folder.name) / "study", {"analysis": {"baseline": "scratch_t2"}})
    for scenario in ("scratch_t2", "sequential"):
        for seed in seeds:
            _record(place / f"{scenario}-{seed}", scenario, seed, since if broken == seed else None)
    return folder


def _record(path: Path, scenario: str, seed: int, broken: int | None) -> None:
    rng = np.random.default_rng([seed, len(scenario)])
    config = {"method": "sgd" if scenario == "sequential" else scenario, "scenario": scenario, "seed": seed}
    labels = np.tile(np.arange(_SAMPLES) % _CLASSES, (1, len(_SETS), 1))
    centres = np.random.default_rng(0).normal(size=(_CLASSES, _UNITS)) * 2
    classes = [f"class {i}" for i in range(_CLASSES)]
    streams = SmallStreams(seed, scenario, labels[0])
    rows = [(task, epoch) for task in ("t1", "t2") for epoch in range(_EPOCHS + 1)]
    with Recorder(
        path, config, seeds=[seed], eval_sets=_SETS, tasks=["t1", "t2"], classes=classes, provenance=False,
        summary=False, variables=robust_probes.VARIABLES,
        labels={"stream": STREAMS, "coalition": COALITIONS, **robust_probes.probe_labels()},
    ) as recorder:  # fmt: skip
        recorder.once("probe_samples", label=labels)
        recorder.once("streams", parameters=[30_000], trainable_parameters=[20_000], stream_parameters=[[10_000] * 3])
        recorder.once("examples", **_examples(labels[:, 0]))
        for place, (task, epoch) in enumerate(rows if scenario == "sequential" else rows[_EPOCHS + 1 :]):
            gone = np.nan if broken is not None and epoch >= broken else 0.0
            high = 0.4 + 0.5 * epoch / _EPOCHS
            accuracy = {name: _accuracy(name, task, high, rng) + gone for name in _SETS}
            loss = {name: -math.log(value) if value > 0 else gone for name, value in accuracy.items()}
            layers = {
                layer: np.maximum(rng.normal(size=(len(_SETS), _SAMPLES, _UNITS)) + centres[labels[0]] + 0.3 * place, 0)
                for layer in _LAYERS
            }
            layers = {layer: features + gone for layer, features in layers.items()}
            logits = {name: rng.normal(size=(1, _SAMPLES, _CLASSES)) + gone for name in (*_SETS, "train")}
            for name, own in logits.items():  # the longer it is trained, the surer it is of most of its labels
                own[0, np.arange(_SAMPLES), labels[0, 0]] += high * (2.0 if name.startswith((task, "train")) else 0.5)
            weights = {"body": rng.normal(size=(4, _UNITS)), "head.weight": rng.normal(size=(_CLASSES, _UNITS))}
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": accuracy, "macro_accuracy": accuracy, "loss": loss},
                expert={"accuracy": accuracy, "macro_accuracy": accuracy, "loss": loss},
                examples=judge_examples(logits, dict.fromkeys(logits, labels[:, 0])),
                train={"gradient_norm": rng.random() + gone, "patched_images": 5.0},
                resources={
                    "seconds": 1.0 + rng.random() + gone, "images": 10 + gone, "flops": 1e9 + gone,
                    "peak_memory": 1e8 + gone, "peak_device_memory": 1e7 + gone, "buffer_bytes": 1e6 + gone,
                },
                snapshot={
                    "features": layers, "weights": {name: value + gone for name, value in weights.items()},
                    "streams": streams.snapshot(place, high, gone),
                },
            )  # fmt: skip
            found = 1.0 + place + rng.random() + gone
            for name in _PROBES:
                recorder.probe(name, found)
            if (task, epoch) == rows[-1]:  # they take their time
                robust_probes.record_probes(recorder, rng, gone)


def _examples(labels: NDArray[np.int64]) -> dict[str, dict[str, NDArray[np.int64]]]:
    """What examples are recorded: those of every set, and of the train data half of each task."""
    halves = np.repeat([[0, 1]], _SAMPLES // 2, axis=1)
    tasks = {**{name: np.full((1, _SAMPLES), task) for name, task in _SETS.items()}, "train": halves}
    return {"label": dict.fromkeys(tasks, labels), "task": tasks}


def _accuracy(name: str, task: str, high: float, rng: np.random.Generator) -> float:
    own = name.startswith(task)
    level = high if own else 0.5
    return float(np.clip(level * (0.6 if "masked" in name else 1.0) + 0.05 * rng.random(), 0.01, 0.99))
