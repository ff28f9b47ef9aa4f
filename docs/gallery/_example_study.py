"""A small made-up study for the gallery: five learners, four seeds, curves that rise, features that drift.

Nothing is trained: the numbers are drawn from smooth curves with a little noise, so that every figure has something
to show in a second. Names and groups are those that the laboratory writes.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

import numpy as np

import waterjar

EPOCHS_T1, EPOCHS_T2, SEEDS = 6, 10, (1, 2, 3, 4)
SETS = {
    "t1_all": 0,
    "t2_all_normal": 1,
    "t2_shortcut_normal": 1,
    "t2_shortcut_masked": 1,
    "t2_nonshortcut_normal": 1,
    "t2_validation": 1,
}
# name: (scenario, where accuracy ends, epochs until it is half there, what is left with the mask, of T1, seconds)
LEARNERS = {
    "scratch_t2": ("scratch_t2", 0.78, 3.6, 0.80, 0.0, 20.0),
    "interleaved": ("interleaved", 0.66, 4.6, 0.85, 0.80, 55.0),
    "sgd": ("sequential", 0.74, 2.4, 0.45, 0.05, 32.0),
    "ewc_on": ("sequential", 0.76, 2.1, 0.50, 0.20, 41.0),
    "derpp": ("sequential", 0.84, 1.7, 0.62, 0.55, 61.0),
}
EXAMPLES = 200
EASE = {name: np.random.default_rng(11 + task).random(EXAMPLES) for name, task in list(SETS.items())[:2]}
"""How soon an example is learned: it is right where accuracy, and a little luck, exceed this."""
CENTRES = np.random.default_rng(7).normal(size=(4, 32))


def target(script: str) -> Path:
    """Where a script of the gallery puts its picture: beside itself, or in the folder named as its argument."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(script).parent
    return folder / Path(script).with_suffix(".png").name


@functools.cache
def example_study() -> waterjar.Study:
    """The study, recorded once a process in a folder of its own that goes away at the end."""
    keep = tempfile.TemporaryDirectory(prefix="waterjar-gallery-")
    example_study.folder = keep  # type: ignore[attr-defined]  # alive as long as we are
    folder = waterjar.create_study(Path(keep.name) / "study")
    for name in LEARNERS:
        for seed in SEEDS:
            record(folder / f"{name}-{seed}", name, seed)
    return waterjar.open_study(folder)


def record(path: Path, name: str, seed: int) -> None:
    """One run: accuracies, costs, features and weights at every epoch."""
    scenario, end, half, masked, kept, seconds = LEARNERS[name]
    rng = np.random.default_rng([seed, list(LEARNERS).index(name)])
    config = {"method": name, "scenario": scenario, "data": "made-up curves", "seed": seed}
    phases = [("t1", EPOCHS_T1), ("t2", EPOCHS_T2)] if scenario == "sequential" else [("t2", EPOCHS_T2)]
    if scenario == "interleaved":
        phases = [("joint", EPOCHS_T2)]
    end, half = end + 0.02 * rng.normal(), half * (1 + 0.1 * rng.normal())
    with waterjar.Recorder(
        path,
        config,
        seeds=[seed],
        eval_sets=SETS,
        tasks=["t1", "t2"],
        classes=["a", "b", "c", "d"],
        provenance=False,
        summary=False,
    ) as recorder:
        recorder.once("probe_samples", label=np.tile(np.repeat(np.arange(4), 8), (1, len(SETS), 1)))
        weights, t1 = rng.normal(size=(12, 8)) * 0.1, 0.0
        for task, epochs in phases:
            for epoch in range(epochs + 1):
                risen = end * epoch**2 / (epoch**2 + half**2) * (task != "t1")
                fresh = 0.75 * (1 - np.exp(-epoch / 2))
                t1 = fresh if task in ("t1", "joint") else t1 + (kept * 0.75 - t1) * 0.4 * (scenario == "sequential")
                noise = 0.012 * rng.normal(size=len(SETS)) * (epoch > 0)
                found = dict(zip(SETS, (t1, risen, risen, masked * risen, 0.95 * risen, risen), strict=True))
                accuracy = np.clip(np.array(list(found.values())) + noise, 0.0, 1.0)
                weights = weights + 0.02 * rng.normal(size=weights.shape) * (epoch > 0)
                recorder.log(
                    train_task=task,
                    epoch=epoch,
                    performance={"accuracy": accuracy, "macro_accuracy": accuracy},
                    examples=examples(rng, accuracy),
                    train={"patched_images": 50.0 * (task != "t1")},
                    resources={
                        "seconds": seconds / (epochs + 1) * (1 + 0.1 * rng.random()),
                        "flops": 1e9 * seconds,
                        "images": 400,
                    },
                    snapshot={"features": {"penultimate": features(rng, task, epoch)}, "weights": {"w": weights}},
                )


def examples(rng: np.random.Generator, accuracy: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Of the sets of all samples: which examples are right, the easy ones first, and by how much."""
    margin = {}
    for (name, ease), level in zip(EASE.items(), accuracy[:2], strict=True):
        margin[name] = 8 * (level - ease + 0.12 * rng.normal(size=EXAMPLES) * (level > 0))[None]
    return {"margin": margin, "correct": {name: values > 0 for name, values in margin.items()}}


def features(rng: np.random.Generator, task: str, epoch: int) -> np.ndarray:
    """(eval_set, sample, unit): four clouds that draw together as training goes on, and turn with the second task."""
    turned = np.roll(CENTRES, 3 * (task != "t1"), axis=1)
    clouds = np.repeat(turned, 8, axis=0) + rng.normal(size=(len(SETS), 32, 32)) * (0.4 + 1.2 * np.exp(-epoch / 3))
    return np.maximum(clouds, 0.0)
