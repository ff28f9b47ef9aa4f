"""Scenarios: in which order the tasks are trained. A scenario is a row of phases; a batch is a function of its place.

Order and augmentation of an epoch hang on (seed, task, epoch within the task, sample id) and on nothing before it,
so that scratch_t2 and sequential see the same T2 batches, and a resumed run the same ones as an unbroken one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.augmentation import AugmentationParameters, apply, epoch_parameters, normalise, to_float
from waterjar.lab.config import RunConfig
from waterjar.lab.counter_hash import epoch_order
from waterjar.lab.evaluation import Normalisation
from waterjar.lab.loop import Phase
from waterjar.lab.shortcuts import inject_where
from waterjar.lab.tasks import TASKS, Rows, TwoTasks
from waterjar.run.schema import JOINT


@dataclass(frozen=True, eq=False)
class PooledPhase(Phase):
    """A phase on one pool of images: t1, t2 or joint."""

    task: int
    """The number the learner is told."""
    rows: Rows
    """Rows of the train split."""


def phases(tasks: TwoTasks, config: RunConfig) -> list[PooledPhase]:
    """What is trained, in which order."""

    def pooled(name: str, task: int, rows: Rows, epochs: int) -> PooledPhase:
        return PooledPhase(name, epochs, len(batch_bounds(len(rows), config.training.batch_size)), task, rows)

    t1, t2 = tasks.train_rows["t1"], tasks.train_rows["t2"]
    length = config.training
    second = pooled("t2", 1, t2, length.epochs_t2)
    match config.scenario:
        case "scratch_t2":
            return [second]
        case "interleaved":
            return [pooled(JOINT, 0, np.concatenate([t1, t2]), length.epochs_t2)]
        case "sequential":
            return [pooled("t1", 0, t1, length.epochs_t1), second]


def batch_bounds(count: int, size: int, *, at_least: int = 2) -> list[tuple[int, int]]:
    """Cut `count` samples into batches; a rest too small for batch norm joins the batch before it.

    >>> batch_bounds(65, 32)
    [(0, 32), (32, 65)]
    >>> batch_bounds(66, 32)
    [(0, 32), (32, 64), (64, 66)]
    """
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] < at_least:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


class Batch(NamedTuple):
    """One training batch as the learner sees it."""

    inputs: Tensor
    labels: Tensor
    patched: int
    """How many of its images carry the shortcut."""


class Epoch:
    """One epoch of one phase: its batches, by number."""

    def __init__(
        self, tasks: TwoTasks, config: RunConfig, phase: PooledPhase, epoch: int, scale: Normalisation
    ) -> None:
        self._tasks = tasks
        self._scale = scale
        self._rows = phase.rows[epoch_order(config.seed, phase.name, epoch, len(phase.rows))]
        self._labels = tasks.labels["train"][self._rows]
        self._index = np.asarray(tasks.data.train_index)[self._rows]
        self._carries = tasks.carries["train"][self._rows]
        self._of_task = (self._labels >= tasks.n_t1).astype(np.int64)
        self._parameters = {
            task: epoch_parameters(
                getattr(config.augmentation, name),
                config.seed,
                name,
                epoch,
                self._index,
                image_size=tasks.data.image_size,
            )
            for task, name in enumerate(TASKS)
            if (self._of_task == task).any()
        }
        self.bounds = batch_bounds(len(self._rows), config.training.batch_size)

    def batch(self, number: int) -> Batch:
        """Augmented, then patched, then normalised."""
        part = slice(*self.bounds[number])
        images = self._augmented(part)
        carries = self._carries[part]
        shortcut = self._tasks.shortcut
        images = inject_where(shortcut, images, self._index[part], "train", carries)
        inputs = normalise(images, self._scale.mean, self._scale.std)
        return Batch(inputs, torch.from_numpy(self._labels[part]), int(carries.sum()))

    def _augmented(self, part: slice) -> Tensor:
        images, rows = self._tasks.data.train_images, self._rows[part]
        if len(self._parameters) == 1:
            return apply(images, next(iter(self._parameters.values()))[part], rows)
        of_task = self._of_task[part]
        out = torch.empty(len(rows), 3, *self._tasks.data.image_size)
        for task, parameters in self._parameters.items():
            which = np.flatnonzero(of_task == task)
            if len(which):
                out[torch.from_numpy(which)] = apply(images, _pick(parameters, part, which), rows[which])
        return out


def _pick(parameters: AugmentationParameters, part: slice, which: NDArray[np.int64]) -> AugmentationParameters:
    return parameters[part][which]


def plain_batches(
    tasks: TwoTasks, phase: PooledPhase, scale: Normalisation, size: int, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """The phase's images as they are, shortcut planted, not augmented: what a learner measures at a task's end."""
    index = np.asarray(tasks.data.train_index)
    for start, stop in batch_bounds(len(phase.rows), size):
        rows = phase.rows[start:stop]
        images = to_float(tasks.data.train_images, rows)
        images = inject_where(tasks.shortcut, images, index[rows], "train", tasks.carries["train"][rows])
        inputs = normalise(images, scale.mean, scale.std)
        yield inputs.to(device), torch.from_numpy(tasks.labels["train"][rows]).to(device)
