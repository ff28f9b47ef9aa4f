"""What a study would cost: each kind of run is rehearsed for a moment, and scaled up to what its plan declares.

A kind of run is all runs that differ only in their seed, their epochs and what else changes no pace. Those that there
was no time to rehearse are scaled by the floating-point operations of their learner from one that was, and are marked
as inferred. Runs that are begun count with what is left of them.

    run  =  fixed + Σ_phase [ begin + epochs batches batch + end batches ] + Σ_step [ evaluation + record (+ snapshot) ]
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from types import FrameType
from typing import Any

from waterjar.lab.config import cores, resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.loop import Experiment
from waterjar.lab.study import kinds
from waterjar.lab.study.files import allotted
from waterjar.lab.study.job import Job, checkpoints_of
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.progress import Kind, kind_of, look
from waterjar.lab.study.rehearsal import Rehearsal, flops_of, rehearse
from waterjar.lab.study.runner import DATA, threads

_LEAST, _SHARE, _MOST = 3.0, 0.1, 18.0
"""Seconds for all rehearsals: a share of what is estimated, and not less and not more than these. Another one is begun
only if it can be expected to be through by then."""
_CUT_OFF = 19.5
"""Seconds after which even a first rehearsal is stopped."""
_START = 3.0
"""Seconds until a worker process is up, about: it loads torch."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """What is left of one run."""

    seconds: float
    """NaN where nothing could be rehearsed in time."""
    bytes: int
    temporary_bytes: int
    """More bytes, which it takes while it runs and gives back: its last checkpoint."""
    inferred: bool = False
    """Whether it is scaled from a run of another kind."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What is left of a study."""

    costs: dict[str, Cost]
    """By the name of the run."""
    seconds: float
    """From the command to the end."""
    bytes: int
    """On disk at most: runs, checkpoints, the copy of the data."""
    kinds: int
    """Kinds of run that are left."""
    tried: int
    """How many of them were rehearsed."""
    batches: int
    """Batches that were trained for it."""
    share: float
    """Of the images of an evaluation, that were evaluated: the least over the kinds."""
    took: float
    """Seconds of all rehearsals."""


def estimate(
    declaration: Declared, jobs: list[Job], data: ImageData, watch: Callable[[int, int], None] | None = None
) -> Estimate:
    """Rehearse the kinds of run that are left, as far as there is time, and add up.

    `watch` is called with how many kinds were rehearsed, and how many there are.
    """
    began = time.monotonic()
    resources = declaration.resources
    left = [job for job in jobs if job.status != "sealed"]
    asked: dict[Kind, Job] = {kind_of(job): job for job in reversed(left)}
    asked = {kind_of(job): asked[kind_of(job)] for job in left}
    tried: dict[Kind, Rehearsal] = {}
    inferred: dict[Kind, Rehearsal] = {}
    with threads(resources.threads):
        for number, (kind, job) in enumerate(asked.items()):
            if watch is not None:
                watch(number, len(asked))
            make = _maker(job, resources.model_dump(mode="json"))
            allowed = min(_MOST, max(_LEAST, _SHARE * _all(left, tried)))
            spent = time.monotonic() - began
            if tried and allowed - spent < spent / len(tried):  # as long as one takes
                inferred[kind] = _scaled(tried, kind, job, asked, make, data, _MOST - spent)
                continue
            share = min(_LEAST, max(_LEAST / 2, (allowed - spent) / (len(asked) - number))) if tried else _LEAST
            with contextlib.suppress(_TooLongError), _stopped_after(_CUT_OFF - spent):
                tried[kind] = rehearse(make, data, time.monotonic() + share)
    known = {**inferred, **tried}
    costs = {job.path.name: Cost(0.0, 0, 0) for job in jobs}
    for job in left:
        kind = kind_of(job)
        costs[job.path.name] = _cost(job, known.get(kind), resources.checkpoint_frequency, kind not in tried)
    workers = max(1, min(resources.at_a_time, len(left)))
    seconds = [costs[job.path.name].seconds for job in left]
    slowdown = max(1.0, workers * resources.threads / cores()) if resolve_device(resources.device) == "cpu" else 1.0
    size = sum(cost.bytes for cost in costs.values())
    size += sum(sorted((cost.temporary_bytes for cost in costs.values()), reverse=True)[:workers])
    if jobs and left and not list((jobs[0].path.parent / DATA).glob(f"{data.name}-{data.fingerprint[:16]}")):
        size += data.train_images.nbytes + data.test_images.nbytes
    return Estimate(
        costs,
        slowdown * finished_after(seconds, workers, _START),
        size,
        kinds=len(asked),
        tried=len(tried),
        batches=sum(one.batches for one in tried.values()),
        share=min((one.share for one in tried.values()), default=0.0),
        took=time.monotonic() - began,
    )


def _maker(job: Job, resources: dict[str, Any]) -> Callable[[ImageData, Path], Experiment]:
    """Makes the experiment of a run, alone in this process."""
    kind = kinds.of(job.kind)
    fitted = getattr(kind, "fitted", None)

    def make(data: ImageData, scratch: Path) -> Experiment:
        config = job.config if fitted is None else fitted(job.config, data)
        return kind.experiment(config.model_dump(mode="json"), data, {**resources, "workers": cores()}, scratch)

    return make


def _all(left: list[Job], tried: dict[Kind, Rehearsal]) -> float:
    """Seconds of all that is left, other kinds taken to be like those that were tried, an image like another."""
    known = [(job, tried[kind_of(job)]) for job in left if kind_of(job) in tried]
    images = sum(job.images for job, _ in known)
    seconds = sum(_seconds(job, one) for job, one in known)
    return seconds * sum(job.images for job in left) / images if images else 0.0


def _scaled(
    tried: dict[Kind, Rehearsal],
    kind: Kind,
    job: Job,
    asked: dict[Kind, Job],
    make: Callable[[ImageData, Path], Experiment],
    data: ImageData,
    seconds: float,
) -> Rehearsal:
    """What a rehearsal would have found, by one of a kind that is most like it: of the same network if there is one.

    Where there is no time left even to build the network, an image is taken to cost what it does there.
    """
    same = [one for one in tried if one[0] == kind[0]] or list(tried)
    near = max(same, key=lambda one: SequenceMatcher(None, one[1], kind[1], autojunk=False).quick_ratio())
    found, ratio = tried[near], job.images / max(1, asked[near].images)
    with contextlib.suppress(_TooLongError), _stopped_after(seconds):
        experiment = make(data, Path())
        try:
            ratio = flops_of(experiment) / max(1.0, found.flops)
        finally:
            experiment.close()
    # By the batches that both have: a batch costs so many times as much, and so does an image that is evaluated.
    each = ratio * _batches(asked[near]) / max(1, _batches(job))
    phases = tuple(dataclasses.replace(phase, batch=phase.batch * each, end=phase.end * each) for phase in found.phases)
    return dataclasses.replace(found, phases=phases, evaluation=found.evaluation * each, snapshot=found.snapshot * each)


def _batches(job: Job) -> int:
    return sum(phase.epochs * phase.batches for phase in job.plan.phases)


def _steps(job: Job, tried: Rehearsal) -> list[float]:
    """Seconds of every step of a run."""
    found, plan = [], job.plan
    each = tried.step + (tried.evaluation + tried.due * tried.snapshot) / plan.processes
    for number, phase in enumerate(plan.phases):
        pace = tried.phases[min(number, len(tried.phases) - 1)]
        epochs = plan.epochs_a_step * phase.batches * pace.batch / plan.processes
        found += [each + pace.begin] + [each + epochs] * (phase.epochs // plan.epochs_a_step)
        found[-1] += pace.end * phase.batches / plan.processes
    return found


def _seconds(job: Job, tried: Rehearsal) -> float:
    return tried.fixed + sum(_steps(job, tried)[look(job).steps :])


def _cost(job: Job, tried: Rehearsal | None, keep: str, inferred: bool) -> Cost:
    """What is left of a run."""
    if tried is None:
        return Cost(float("nan"), 0, 0, inferred=True)
    steps = len(_steps(job, tried))
    size = tried.files.grown(steps, round(tried.due * steps))
    size += tried.best if keep != "none" else 0
    size += len(job.plan.phases) * tried.last if keep == "task" else 0
    there = allotted(job.path) + allotted(checkpoints_of(job.path))
    return Cost(_seconds(job, tried), max(0, size - there), tried.last, inferred)


def finished_after(seconds: list[float], workers: int, start: float = 0.0) -> float:
    """When the last of some runs ends, if each goes to the worker that is free first; workers begin at `start`.

    >>> finished_after([3.0, 1.0, 1.0, 4.0], workers=2)
    6.0
    """
    free = [start] * workers if seconds else [0.0]
    for duration in seconds:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


class _TooLongError(Exception):
    """A rehearsal was stopped."""


@contextlib.contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Stop what goes on within, by `_TooLongError`; only where signals can be had, which is the main thread."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
