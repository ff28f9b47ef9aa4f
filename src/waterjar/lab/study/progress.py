"""How far a study is, read from its runs: runs, epochs, images a second, time left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.lab.study import kinds
from waterjar.lab.study.job import Job
from waterjar.run.root import read_array, read_root
from waterjar.run.store import ROOT

Kind = tuple[str, str]
"""The network as JSON, and all the other settings that a run's speed hangs on."""


@dataclass(frozen=True)
class JobProgress:
    """How far one run is."""

    status: str
    steps: int
    """Recorded ones: an evaluation at the start of each phase or task, and those after its epochs."""
    epochs: int
    images: int
    seconds: float
    """Wall time behind those images, evaluations included."""
    headline: float | None
    """The accuracy that its kind of study is watched by."""


def look(job: Job) -> JobProgress:
    """Read one run's progress from disk."""
    if not (job.path / ROOT).exists():
        return JobProgress("todo", 0, 0, 0, 0.0, None)
    root = read_root(job.path)
    status = str(root["attributes"]["status"])
    steps = int(root["attributes"]["progress"]["step"]) + 1
    nodes = root["consolidated_metadata"]["metadata"]
    if "resources/images" not in nodes:
        return JobProgress(status, steps, 0, 0, 0.0, None)
    images = read_array(job.path, "resources/images", nodes["resources/images"])
    seconds = read_array(job.path, "resources/seconds", nodes["resources/seconds"])
    epochs = int((images > 0).sum()) * job.plan.epochs_a_step
    headline = kinds.of(job.kind).headline(job.path, root)
    return JobProgress(status, steps, epochs, int(images.sum()), float(seconds.sum()), headline)


def glance(job: Job, before: JobProgress | None = None) -> JobProgress:
    """Look at a run while others write it: what cannot be read this time stays as it was before.

    A table is no reason to end a study. Whoever trains the run says what is wrong with it.
    """
    try:
        return look(job)
    except (WaterjarError, OSError, ValueError, LookupError, TypeError):
        return before or JobProgress("unreadable", 0, 0, 0, 0.0, None)


def kind_of(job: Job) -> Kind:
    """What a job's speed hangs on."""
    return kinds.of(job.kind).pace_key(job.config)


def rates(jobs: list[Job], seen: dict[str, JobProgress]) -> dict[Kind, float]:
    """Images a second of every kind of run that has trained an epoch."""
    sums: dict[Kind, list[float]] = {}
    for job in jobs:
        progress = seen[job.path.name]
        if progress.images:
            total = sums.setdefault(kind_of(job), [0.0, 0.0])
            total[0] += progress.images
            total[1] += progress.seconds
    return {kind: images / seconds for kind, (images, seconds) in sums.items() if seconds > 0}


def seconds_left(jobs: list[Job], seen: dict[str, JobProgress], workers: int) -> float | None:
    """Time to the end if every kind goes on as fast; unseen kinds count as those of the same network, or as all."""
    known = rates(jobs, seen)
    if not known:
        return None
    usual = float(np.mean(list(known.values())))
    by_network: dict[str, list[float]] = {}
    for kind, rate in known.items():
        by_network.setdefault(kind[0], []).append(rate)
    left = []
    for job in jobs:
        if seen[job.path.name].status != "sealed":
            kind = kind_of(job)
            rate = known.get(kind) or float(np.mean(by_network.get(kind[0], [usual])))
            left.append((job.images - seen[job.path.name].images) / rate)
    return max(sum(left) / workers, max(left, default=0.0))
