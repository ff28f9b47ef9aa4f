"""How far a study is, read from its runs: runs, epochs, images a second, time left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waterjar.lab.study.runner import Job
from waterjar.run.root import read_array, read_root
from waterjar.run.store import ROOT

Kind = tuple[str, str]
"""Learner and backbone: what a run's speed hangs on."""


@dataclass(frozen=True)
class JobProgress:
    """How far one run is."""

    status: str
    epochs: int
    images: int
    seconds: float
    """Wall time behind those images, evaluations included."""
    validation: float | None
    """The last accuracy on t2_validation."""


def look(job: Job) -> JobProgress:
    """Read one run's progress from disk."""
    if not (job.path / ROOT).exists():
        return JobProgress("todo", 0, 0, 0.0, None)
    root = read_root(job.path)
    status = str(root["attributes"]["status"])
    nodes = root["consolidated_metadata"]["metadata"]
    if "resources/images" not in nodes:
        return JobProgress(status, 0, 0, 0.0, None)
    images = read_array(job.path, "resources/images", nodes["resources/images"])
    seconds = read_array(job.path, "resources/seconds", nodes["resources/seconds"])
    accuracy = read_array(job.path, "performance/accuracy", nodes["performance/accuracy"])
    names = list(root["attributes"]["eval_sets"])
    last = float(accuracy[-1, names.index("t2_validation"), 0])
    return JobProgress(status, int((images > 0).sum()), int(images.sum()), float(seconds.sum()), last)


def kind_of(job: Job) -> Kind:
    """What a job's speed hangs on."""
    return job.config.learner, job.config.backbone


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
    """Time to the end if every kind goes on as fast; unseen kinds count as the mean of the others."""
    known = rates(jobs, seen)
    if not known:
        return None
    usual = float(np.mean(list(known.values())))
    left = [
        (job.images - seen[job.path.name].images) / known.get(kind_of(job), usual)
        for job in jobs
        if seen[job.path.name].status != "sealed"
    ]
    return max(sum(left) / workers, max(left, default=0.0))
