"""What a study would cost: small copies of every kind of run are really run, and scaled up by their kind of study.

Runs that are begun count with what is left of them.
"""

from __future__ import annotations

import functools
import heapq
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from waterjar.lab.config import cores, resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.study import kinds
from waterjar.lab.study.blocking import Blocking
from waterjar.lab.study.executors.local import LocalPool
from waterjar.lab.study.job import Job
from waterjar.lab.study.kinds import Cost, Declared
from waterjar.lab.study.progress import Kind, kind_of
from waterjar.lab.study.runner import DATA

_SECONDS = 1.5  # a copy that takes less than that is followed by a larger one
_ALTOGETHER = 30.0  # seconds shared by all kinds of runs


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


def estimate(
    declaration: Declared, jobs: list[Job], data: ImageData, watch: Callable[[int, int], None] | None = None
) -> Estimate:
    """Try every kind of run that is left in a process of its own, and add up.

    `watch` is called with how many kinds were tried, and how many there are.
    """
    left = [job for job in jobs if job.status != "sealed"]
    study, resources = kinds.of(declaration.kind), declaration.resources
    tried: dict[Kind, Any] = {}
    start = 0.0
    if left:
        pool = LocalPool(1)
        several = len({kind_of(job) for job in left})
        each = min(_SECONDS, _ALTOGETHER / several)
        try:
            began = time.monotonic()
            _in(pool, os.getpid)
            start = time.monotonic() - began
            for job in left:
                if kind_of(job) not in tried:
                    if watch is not None:
                        watch(len(tried), several)
                    run = functools.partial(_in, pool)
                    tried[kind_of(job)], warming = study.rehearse(job, data, resources, run, each)
                    start += warming
        finally:
            pool.stop()
    costs = {job.path.name: Cost(0.0, 0, 0) for job in jobs}
    costs |= {job.path.name: study.cost(job, data, tried[kind_of(job)]) for job in left}
    workers = max(1, min(resources.at_a_time, len(left)))
    seconds = [costs[job.path.name].seconds for job in left]
    slowdown = max(1.0, workers * resources.threads / cores()) if resolve_device(resources.device) == "cpu" else 1.0
    size = sum(cost.bytes for cost in costs.values())
    size += sum(sorted((cost.temporary_bytes for cost in costs.values()), reverse=True)[:workers])
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


def _in(pool: LocalPool, fn: Callable[..., Any], *args: Any) -> Any:
    return Blocking(pool).submit(fn, *args).result()
