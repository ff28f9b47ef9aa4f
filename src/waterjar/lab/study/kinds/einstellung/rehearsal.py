"""Small copies of a run, really run: what the estimate of a study is made from.

A copy has the run's settings, but a few images of each class and three epochs a phase. It goes through the same
trainer, recorder and checkpoints, so that nothing is left out of the measurement: the replay, the Fisher information
at the end of a task, the evaluation, the snapshots, the files and the folders.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.lab.config import RunConfig
from waterjar.lab.data import ImageData, from_cache
from waterjar.lab.evaluation import evaluation_sets
from waterjar.lab.examples import train_sets
from waterjar.lab.scenarios import phases
from waterjar.lab.study.rehearsal import allotted, few_of, rehearsal_folder
from waterjar.lab.tasks import TwoTasks, arrange
from waterjar.run.reader import open_run
from waterjar.run.root import read_root

EPOCHS = 3
FEWEST = 2
"""Images a class: one to train on, one to hold out."""


@dataclass(frozen=True)
class Stretch:
    """One phase of a copy."""

    images: int
    epoch: float
    """Seconds of an epoch and what is written after it, without the evaluation."""
    end: float
    """Seconds that the end of the task takes on top."""


@dataclass(frozen=True)
class Growth:
    """The files of one array."""

    along: str
    """The dimension it grows along; empty if it does not."""
    rows: int
    rows_a_chunk: int
    samples: int
    """Images whose features it holds; 0 if it holds none."""
    bytes: int
    files: int


@dataclass(frozen=True)
class Rehearsal:
    """What a copy took."""

    seconds: float
    evaluated: int
    """Images shown in one evaluation."""
    evaluation: float
    """Seconds of one evaluation."""
    phases: tuple[Stretch, ...]
    fixed: float
    """Seconds outside of all steps: setting up, opening, sealing."""
    arrays: tuple[Growth, ...]
    rest: int
    """Bytes of everything else in the run's folder."""
    best: int
    """Bytes of the best checkpoint, with its folder."""
    last: int
    """Bytes of the last checkpoint, which goes when the run is complete."""


def small_copy(config: RunConfig) -> RunConfig:
    """The settings of a copy; half of T2 is held out, since a tenth of two images is none."""
    training = config.training.model_copy(update={"epochs_t1": EPOCHS, "epochs_t2": EPOCHS})
    tasks = config.tasks.model_copy(update={"validation": 0.5})
    recording = config.recording.model_copy(update={"every": 1})
    return config.model_copy(update={"training": training, "tasks": tasks, "recording": recording})


def most_per_class(data: ImageData, config: RunConfig) -> int:
    """How many train images of each class a copy can have at most."""
    tasks = config.tasks
    classes = data.classes_of((*tasks.t1_superclasses, *tasks.t2_superclasses))
    return int(np.bincount(data.train_labels, minlength=len(data.class_names))[classes].min())


def few_images(data: ImageData, config: RunConfig, per_class: int) -> ImageData:
    """The first `per_class` train images of each class of the tasks, and test images in the proportion of the whole."""
    tasks = config.tasks
    classes = data.classes_of((*tasks.t1_superclasses, *tasks.t2_superclasses))
    tested = max(1, round(per_class * len(data.test_labels) / len(data.train_labels)))
    return few_of(data, classes, per_class, tested)


def evaluated_images(tasks: TwoTasks, config: RunConfig) -> int:
    """How many images one evaluation shows to the network."""
    return sum(len(one.rows) for one in [*evaluation_sets(tasks), *train_sets(tasks, config.recording)])


def rehearse_copy(config: dict[str, Any], cache: str, resources: dict[str, Any]) -> Rehearsal:
    """Run a copy (its config, and its data as `to_cache` wrote them), in a folder that is removed again."""
    import torch  # noqa: PLC0415 - in the worker

    from waterjar.lab.einstellung import train  # noqa: PLC0415

    copy, data = RunConfig.model_validate(config), from_cache(cache)
    before = torch.get_num_threads()
    torch.set_num_threads(resources["threads"])
    try:
        with rehearsal_folder() as folder:
            run, checkpoints = folder / "run", folder / "checkpoints"
            start = time.monotonic()
            train(copy, data, run, checkpoints=checkpoints, device=resources["device"], checkpoint_seconds=1e9)
            return _measured(copy, data, run, checkpoints, time.monotonic() - start)
    finally:
        torch.set_num_threads(before)


def _measured(copy: RunConfig, data: ImageData, run: Path, checkpoints: Path, seconds: float) -> Rehearsal:
    used = open_run(run)["resources"]
    steps = used.seconds.values.ravel()
    tasks = arrange(data, copy)
    evaluation = float(steps[0])
    stretches = []
    for number, phase in enumerate(phases(tasks, copy)):
        *epochs, last = steps[number * (EPOCHS + 1) + 1 : (number + 1) * (EPOCHS + 1)].tolist()
        usual = sum(epochs) / len(epochs)
        stretches.append(Stretch(len(phase.rows), max(0.0, usual - evaluation), max(0.0, last - usual)))
    arrays = _arrays(run)
    best = allotted(checkpoints)
    velocity = best if copy.learner_settings.get("momentum") else 0
    return Rehearsal(
        seconds=seconds,
        evaluated=evaluated_images(tasks, copy),
        evaluation=evaluation,
        phases=tuple(stretches),
        fixed=seconds - float(steps.sum()),
        arrays=arrays,
        rest=allotted(run) - sum(array.bytes for array in arrays),
        best=best,
        last=best + velocity + int(used.buffer_bytes.values.max()),
    )


def _arrays(run: Path) -> tuple[Growth, ...]:
    found = []
    for key, node in read_root(run)["consolidated_metadata"]["metadata"].items():
        if node["node_type"] != "array" or not node["shape"] or "example" in node["dimension_names"]:
            continue  # what examples take follows from their number
        dims, chunks = node["dimension_names"], node["chunk_grid"]["configuration"]["chunk_shape"]
        along = dims[0] if dims[0] in ("step", "snapshot") else ""
        samples = node["shape"][dims.index("sample")] if "sample" in dims else 0
        folder = run / key / "c"
        files = sum(path.is_file() for path in folder.rglob("*"))
        found.append(Growth(along, node["shape"][0], chunks[0], samples, allotted(folder), files))
    return tuple(found)
