"""What a study would cost: small copies of every kind of run are really run, and scaled up.

Two copies, of few and of more images, tell what grows with the images from what does not:

    run  =  fixed + Σ_phase [ (epochs + 1) evaluation + epochs epoch(images) + end of task(images) ]

each a straight line through the two copies. Runs that are begun count with what is left of them.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData, to_cache
from waterjar.lab.evaluation import evaluation_sets
from waterjar.lab.scenarios import phases
from waterjar.lab.study.declaration import Declaration
from waterjar.lab.study.local_pool import LocalPool
from waterjar.lab.study.progress import Kind, kind_of, look
from waterjar.lab.study.rehearsal import (
    FEWEST,
    Growth,
    Rehearsal,
    allotted,
    evaluated_images,
    few_images,
    most_per_class,
    rehearsal_folder,
    rehearse,
    small_copy,
)
from waterjar.lab.study.runner import CHECKPOINTS, DATA, Job
from waterjar.lab.tasks import arrange

_SECONDS = 1.5  # a copy that takes less than that is followed by a larger one
_ALTOGETHER = 30.0  # seconds shared by all kinds
_LARGER = 4
_TOO_SLOW = 10.0  # seconds of the smallest copy, beside which what does not grow is nothing: one copy is enough
_LINE = 120  # bytes that a further file adds to the root and the manifest

Line = tuple[float, float]
"""What there is at none, and what each one adds."""


@dataclass(frozen=True)
class Cost:
    """What is left of one run."""

    seconds: float
    bytes: int
    passing: int
    """More bytes, which it takes while it runs and gives back: its last checkpoint."""


@dataclass(frozen=True)
class Estimate:
    """What is left of a study."""

    costs: dict[str, Cost]
    """By the name of the run."""
    start: float
    """Seconds until a worker process is up and warm."""
    seconds: float
    """From the command to the end."""
    bytes: int
    """On disk at most: runs, checkpoints, the copy of the data."""


@dataclass(frozen=True)
class _Kind:
    few: Rehearsal
    more: Rehearsal


def estimate(declaration: Declaration, jobs: list[Job], data: ImageData) -> Estimate:
    """Try every kind of run that is left in a process of its own, and add up."""
    left = [job for job in jobs if job.status != "sealed"]
    kinds: dict[Kind, _Kind] = {}
    start = 0.0
    if left:
        pool = LocalPool(1)
        each = min(_SECONDS, _ALTOGETHER / len({kind_of(job) for job in left}))
        try:
            began = time.monotonic()
            _in(pool, os.getpid)
            start = time.monotonic() - began
            for job in left:
                if kind_of(job) not in kinds:
                    kinds[kind_of(job)], warming = _try(job, data, declaration, pool, each)
                    start += warming
        finally:
            pool.stop()
    costs = {job.path.name: Cost(0.0, 0, 0) for job in jobs}
    costs |= {job.path.name: _cost(job, data, kinds[kind_of(job)]) for job in left}
    resources = declaration.resources
    workers = max(1, min(resources.workers, len(left)))
    seconds = [costs[job.path.name].seconds for job in left]
    slowdown = max(1.0, workers * resources.threads / _cores()) if resolve_device(resources.device) == "cpu" else 1.0
    size = sum(cost.bytes for cost in costs.values())
    size += sum(sorted((cost.passing for cost in costs.values()), reverse=True)[:workers])
    if jobs and left and not list((jobs[0].path.parent / DATA).glob(f"{data.name}-{data.fingerprint[:16]}")):
        size += data.train_images.nbytes + data.test_images.nbytes
    return Estimate(costs, start, slowdown * finished_after(seconds, workers, start), size)


def finished_after(seconds: list[float], workers: int, start: float = 0.0) -> float:
    """When the last of some runs ends, if each goes to the worker that is free first; workers begin at `start`.

    >>> finished_after([3.0, 1.0, 1.0, 4.0], workers=2)
    6.0
    """
    free = [start] * workers if seconds else [0.0]
    for duration in seconds:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in(pool: LocalPool, fn: Callable[..., Any], *args: Any) -> Any:
    future = pool.submit(fn, *args, name="a run tried out for the estimate")
    while not future.done():
        pool.attend(1.0)
    return future.result()


def _try(job: Job, data: ImageData, declaration: Declaration, pool: LocalPool, seconds: float) -> tuple[_Kind, float]:
    """A kind's rehearsals, and how much longer the very first took: what is compiled and loaded then."""
    copy = small_copy(job.config)
    settings = declaration.resources.model_dump(mode="json")

    def go(per_class: int) -> Rehearsal:
        with rehearsal_folder() as folder:
            cache = to_cache(few_images(data, job.config, per_class), folder)
            found: Rehearsal = _in(pool, rehearse, copy.model_dump(mode="json"), str(cache), settings)
            return found

    cold = go(FEWEST)
    few = more = go(FEWEST)
    per_class, most = FEWEST, most_per_class(data, job.config)
    while per_class < most and more.seconds < (_TOO_SLOW if more is few else seconds):
        per_class = min(most, per_class * _LARGER)
        more = go(per_class)
    return _Kind(few, more), max(0.0, cold.seconds - few.seconds)


def _line(few: tuple[float, float], more: tuple[float, float]) -> Line:
    """Through two points (images, seconds), neither part below 0; through 0 if the points are one.

    >>> _line((10, 3.0), (30, 7.0)), _line((10, 3.0), (30, 12.0)), _line((10, 3.0), (30, 2.0)), _line((4, 2), (4, 2))
    ((1.0, 0.2), (0.0, 0.4), (2.0, 0.0), (0.0, 0.5))
    """
    if more[0] <= few[0]:
        return 0.0, more[1] / more[0]
    slope = (more[1] - few[1]) / (more[0] - few[0])
    if slope <= 0.0:
        return more[1], 0.0
    base = more[1] - slope * more[0]
    return (base, slope) if base >= 0.0 else (0.0, more[1] / more[0])


def _at(line: Line, images: float) -> float:
    return line[0] + line[1] * images


def _cost(job: Job, data: ImageData, kind: _Kind) -> Cost:
    few, more = kind.few, kind.more
    experiment = arrange(data, job.config)
    stretches = phases(experiment, job.config)
    showing = _line((few.evaluated, few.evaluation), (more.evaluated, more.evaluation))
    probed = [len(chosen.rows) for chosen in evaluation_sets(experiment) if len(chosen.rows)]
    samples = min(job.config.recording.samples, *probed)
    evaluation = _at(showing, evaluated_images(experiment))
    features = showing[1] * samples * len(probed) if job.config.recording.features else 0.0
    most = job.config.learner_settings.get("fisher_samples") or max(len(phase.rows) for phase in stretches)
    steps, snapshots = [], 0
    for phase, short, long in zip(stretches, few.phases, more.phases, strict=True):
        epoch = _at(_line((short.images, short.epoch), (long.images, long.epoch)), len(phase.rows))
        end = _at(
            _line((min(most, short.images), short.end), (min(most, long.images), long.end)), min(most, len(phase.rows))
        )
        steps += [evaluation] + [evaluation + epoch] * phase.epochs
        steps[-1] += end
        due = phase.epochs // job.config.recording.every + 1
        snapshots += due
        steps[-1] += due * features
    images = [sum(phase.images for phase in copy.phases) for copy in (few, more)]
    fixed = _at(_line((images[0], few.fixed), (images[1], more.fixed)), sum(map(len, experiment.train_rows.values())))
    there = allotted(job.path) + allotted(job.path.parent / CHECKPOINTS / job.path.name)
    size = more.rest + more.best
    size += sum(_grown(array, {"step": len(steps), "snapshot": snapshots}, samples) for array in more.arrays)
    return Cost(fixed + sum(steps[look(job).steps :]), max(0, size - there), more.last)


def _grown(array: Growth, rows: dict[str, int], samples: int) -> int:
    """Bytes of an array's files when it is complete."""
    chunks = -(-rows.get(array.along, array.rows) // array.rows_a_chunk)
    factor = chunks / max(1, -(-array.rows // array.rows_a_chunk))
    share = samples / array.samples if array.samples else 1.0
    return round(array.bytes * factor * share + max(0.0, factor - 1.0) * array.files * _LINE)
