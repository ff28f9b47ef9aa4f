"""What a study would cost, by trying: some batches and one evaluation of every kind of run."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.scenarios import Epoch
from waterjar.lab.study.declaration import Declaration
from waterjar.lab.study.progress import Kind, kind_of
from waterjar.lab.study.runner import Job
from waterjar.lab.trainer import Trainer

_SECONDS = 1.0
_ROOM = 400_000  # bytes of a run that records nothing but accuracies: metadata and half-full chunks


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    seconds: float
    bytes: int


def estimate(declaration: Declaration, jobs: list[Job], data: ImageData) -> dict[str, Cost]:
    """run name -> what it would cost; each kind of run is tried for about a second."""
    before = torch.get_num_threads()
    torch.set_num_threads(declaration.resources.threads)
    try:
        kinds: dict[Kind, tuple[float, float, int]] = {}
        for job in jobs:
            if kind_of(job) not in kinds:
                kinds[kind_of(job)] = _try(job, data, declaration.resources.device)
    finally:
        torch.set_num_threads(before)
    costs = {}
    for job in jobs:
        per_image, per_evaluation, per_snapshot = kinds[kind_of(job)]
        evaluations = job.epochs + (2 if job.config.scenario == "sequential" else 1)
        snapshots = evaluations // job.config.recording.every + 1 if per_snapshot else 0
        seconds = job.images * per_image + evaluations * per_evaluation
        costs[job.path.name] = Cost(seconds, _ROOM + snapshots * per_snapshot)
    return costs


def _try(job: Job, data: ImageData, device: str) -> tuple[float, float, int]:
    """Seconds per training image, seconds per evaluation, bytes per snapshot."""
    target = resolve_device(device)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(job.config, data, device=target, checkpoints=Path(folder), every=float("inf"))
        phase = trainer.phases[0]
        trainer.learner.begin_task(phase.task)
        epoch = Epoch(trainer.experiment, job.config, phase, 0, trainer.scale)
        start, images = time.monotonic(), 0
        for number in itertools.count():
            if number == 3:  # compiled, memory warm, replay under way
                start, images = time.monotonic(), 0
            batch = epoch.batch(number % len(epoch.bounds))
            trainer.learner.observe(batch.inputs.to(target), batch.labels.to(target))
            images += len(batch.labels)
            if number > 3 and time.monotonic() - start > _SECONDS:
                break
        per_image = (time.monotonic() - start) / images
        start = time.monotonic()
        trainer.evaluate()
        per_evaluation = time.monotonic() - start
        snapshot = trainer.snapshots.take(trainer.learner.network, 0) or {}
        arrays = [a for sets in snapshot.get("features", {}).values() for a in sets.values()]
        size = sum(a.nbytes for a in arrays) + sum(w.nbytes for w in snapshot.get("weights", {}).values())
        return per_image, per_evaluation, size
