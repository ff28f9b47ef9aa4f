"""What a run of binary tasks would cost: a copy of two short tasks is really run, and scaled up.

    run  =  fixed + T [ (evaluations of a task) evaluation(images) + epochs epoch(images) ]

each in proportion to the images. The copy has all repeats, options and companions of the run, and its engine.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from waterjar.lab.binary import BinaryConfig, draw_tasks, estimate_size
from waterjar.lab.binary.engines import choose, processes_a_run
from waterjar.lab.binary.examples import train_examples_of
from waterjar.lab.binary.size import logged_epochs
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData, from_cache, to_cache
from waterjar.lab.study.job import Job, checkpoints_of
from waterjar.lab.study.kinds import Cost, Run
from waterjar.lab.study.parts import Resources
from waterjar.lab.study.progress import look
from waterjar.lab.study.rehearsal import allotted, few_of, rehearsal_folder
from waterjar.run.reader import open_run

_TASKS = 2  # of a copy: the first one warms up
_BATCHES = 2  # of an epoch of the smallest copy
_LONG = 3.0  # seconds, after which a copy is not run a second time to be warm
_LARGER = 4
_FILES = 300_000  # bytes of a run's folders and metadata, about


@dataclass(frozen=True)
class Rehearsal:
    """What a copy took."""

    seconds: float
    trained: int
    """Images of an epoch of its task, of one repeat."""
    epoch: float
    evaluated: int
    """Images shown in one evaluation to one repeat, to whichever of its networks."""
    evaluation: float
    fixed: float
    """Seconds outside of all steps: setting up, opening, sealing."""
    checkpoint: int
    """Bytes."""


def rehearse(job: Job, data: ImageData, resources: Resources, run: Run, seconds: float) -> tuple[Rehearsal, float]:
    """A copy that takes about so long, and how much longer the very first took: what is loaded then."""
    config: BinaryConfig = job.config
    tasks = draw_tasks(data, config)
    classes = config.tasks.classes_per_task
    used = tasks.pool[: _TASKS * classes] if config.tasks.number > 1 else tasks.pool[:classes]
    whole = data.classes_of(np.unique(data.class_superclass[used]).tolist())  # superclasses have images or none
    all_train, all_test = tasks.train_rows.shape[1], tasks.test_rows.shape[1]
    how = resources.model_dump(mode="json")
    if how["engine"] == "auto":  # of the run: its copy is too short for processes
        workers = processes_a_run(resources.workers)
        how["engine"] = choose(config, data, device=resolve_device(resources.device), workers=workers)

    def go(train: int) -> Rehearsal:
        test = max(1, round(all_test * train / all_train))
        copy = _copy(config, used.tolist(), train, test)
        with rehearsal_folder() as folder:
            cache = to_cache(few_of(data, whole, train, test), folder)
            plain = copy.model_dump(mode="json")
            found: Rehearsal = run(rehearse_copy, plain, str(cache), how)
            return found

    train = min(all_train, -(-_BATCHES * config.training.batch_size // classes))
    first = go(train)
    found = first if first.seconds > _LONG else go(train)
    while train < all_train and found.seconds < seconds:
        train = min(all_train, train * _LARGER)
        found = go(train)
    return found, max(0.0, first.seconds - found.seconds)


def _copy(config: BinaryConfig, used: list[int], train: int, test: int) -> BinaryConfig:
    number = len(used) // config.tasks.classes_per_task
    tasks = {"number": number, "classes": tuple(used), "train_per_class": train, "test_per_class": test}
    probed = min(config.recording.samples, test * config.tasks.classes_per_task)
    recording = {"every": 1, "eval_tasks": None, "samples": probed}
    return config.model_copy(
        update={
            "tasks": config.tasks.model_copy(update=tasks),
            "training": config.training.model_copy(update={"epochs": 1, "log_frequency": 1}),
            "recording": config.recording.model_copy(update=recording),
        }
    )


def rehearse_copy(config: Mapping[str, Any], cache: str, resources: Mapping[str, Any]) -> Rehearsal:
    """Run a copy in a folder that is removed again."""
    import torch  # noqa: PLC0415 - in the worker

    from waterjar.lab.binary import train_binary  # noqa: PLC0415
    from waterjar.lab.binary.repeat_group import RepeatGroup  # noqa: PLC0415

    copy, data = BinaryConfig.model_validate(dict(config)), from_cache(cache)
    before = torch.get_num_threads()
    torch.set_num_threads(resources["threads"])
    device, workers = resolve_device(resources["device"]), processes_a_run(int(resources["workers"]))
    try:
        with rehearsal_folder() as folder:
            start = time.monotonic()
            train_binary(
                copy,
                data,
                folder / "run",
                checkpoints=folder / "checkpoints",
                device=device,
                engine=resources["engine"],
                workers=workers,
                checkpoint_seconds=1e9,
            )
            seconds = time.monotonic() - start
            *_, evaluation, last = open_run(folder / "run")["resources"].seconds.values.tolist()
            total = float(open_run(folder / "run")["resources"].seconds.values.sum())
        alone = RepeatGroup(copy, data, [0], device)
        alone.begin_task(0)
        state = io.BytesIO()
        torch.save(alone.state(), state)
    finally:
        torch.set_num_threads(before)
    return Rehearsal(
        seconds=seconds,
        trained=draw_tasks(data, copy).n_train,
        epoch=max(0.0, last - evaluation),
        evaluated=evaluated_images(copy, data),
        evaluation=evaluation,
        fixed=seconds - total,
        checkpoint=state.tell() * len(copy.repeat_seeds),
    )


def evaluated_images(config: BinaryConfig, data: ImageData) -> int:
    """Images shown in one evaluation of one repeat: all tasks to each of its networks, the expert's own, the probes."""
    tasks = draw_tasks(data, config)
    networks = 1 + config.random_baseline + config.multitask
    probes = len(config.probe_tasks) * config.recording.samples if config.recording.features else 0
    trained = config.tasks.number * train_examples_of(tasks, config)
    return tasks.n_test * (networks * config.tasks.number + config.experts) + probes + trained


def cost(job: Job, data: ImageData, tried: Rehearsal) -> Cost:
    """What is left of a run, by its copy."""
    config: BinaryConfig = job.config
    evaluation = tried.evaluation * evaluated_images(config, data) / tried.evaluated
    epoch = tried.epoch * draw_tasks(data, config).n_train / tried.trained
    per_task = len(logged_epochs(config))
    one = [evaluation, *([evaluation + config.training.log_frequency * epoch] * (per_task - 1))]
    steps = one * config.tasks.number
    size = estimate_size(config, data)["total"] + _FILES
    there = allotted(job.path) + allotted(checkpoints_of(job.path))
    return Cost(tried.fixed + sum(steps[look(job).steps :]), max(0, size - there), tried.checkpoint)
