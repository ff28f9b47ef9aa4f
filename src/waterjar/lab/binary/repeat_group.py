"""Some repeats, with all that they need: their tasks, their networks, and the networks that they are held against.

A group of one repeat trains by plain autograd, one of several at once (see `gradients`). What a repeat does is a
function of the config, the data and its seed: not of who else is in the group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.binary.class_tasks import ClassTasks, draw_tasks, labels_of
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.examples import judge_some, train_example_rows
from waterjar.lab.binary.learner import first_network, rule_of
from waterjar.lab.binary.pixels import Pixels, statistics_of
from waterjar.lab.binary.probes import probe_rows
from waterjar.lab.counter_hash import epoch_order, hash_words, permutation
from waterjar.lab.data import ImageData
from waterjar.lab.dead_networks import answers_alike
from waterjar.lab.learning.learner import Learner, StepResult
from waterjar.lab.learning.options import Batch, Rows
from waterjar.lab.scenarios import batch_bounds

Floats = NDArray[np.float64]
TRACED = ("loss", "correct", "reward", "gradient_norm")
"""Of a training batch: sums of cross-entropy, right answers and rewards over its samples; the norm or NaN."""
_IMAGES_AT_ONCE = 1000


class RepeatGroup:
    """The repeats `members` (their numbers) of a run; `space` is that of a group of as many that trains in turns."""

    def __init__(
        self, config: BinaryConfig, data: ImageData, members: Sequence[int], device: str, space: Tensor | None = None
    ) -> None:
        self.config = config
        self.members = tuple(members)
        self._device = torch.device(device)
        self.tasks: ClassTasks = draw_tasks(data, config)
        seeds = config.repeat_seeds
        self._seeds = tuple(seeds[member] for member in members)
        statistics = statistics_of(data.train_images, np.sort(self.tasks.train_rows, axis=None), config.channels)
        self._train = Pixels(data.train_images, statistics, config.channels).to(self._device)
        self._test = Pixels(data.test_images, statistics, config.channels).to(self._device)
        self._space = space
        self.learner = self._made("learner", self._seeds)
        self._space = self.learner.gradients.values  # they learn in turns
        self.initial = {name: view.cpu().numpy().copy() for name, view in self.learner.weights.views.items()}
        self._expert: Learner | None = None
        self._random = (
            self._made("random", self._seeds, frozen_features=True, with_options=False)
            if config.random_baseline
            else None
        )
        self._multitask = self._made("multitask", self._seeds, with_options=False) if config.multitask else None
        self._task = -1
        self._images: list[Tensor] = []
        self._rows = np.empty((0, 0), np.int64)
        self._labels = labels_of(self.tasks.n_train, config.tasks.classes_per_task)
        self._orders: tuple[int, Rows] = (-1, np.empty((0, 0), np.int64))
        self._mixed: tuple[int, Rows] = (-1, np.empty((0, 0), np.int64))
        self.bounds = batch_bounds(self.tasks.n_train, config.training.batch_size, at_least=1)
        self._test_rows = np.stack([self.tasks.test(member).reshape(-1) for member in members])
        one_task = labels_of(self.tasks.n_test, config.tasks.classes_per_task)
        self._test_labels = np.tile(one_task, (len(members), config.tasks.number))
        self._asked = train_example_rows(self.tasks, config, members)
        self._probes = [probe_rows(self.tasks, config, m) for m in members] if config.recording.features else []

    def _made(self, role: str, first_seeds: Sequence[int], **how: bool) -> Learner:
        return Learner(
            rule_of(self.config, **how),
            [first_network(self.config, self._train.shape, seed) for seed in first_seeds],
            seeds=self._seeds,
            role=role,
            device=self._device,
            images=self._train,
            space=self._space,
        )

    def end_task(self) -> int:
        """Let the options measure what mattered in the task; gives how many samples went through networks."""
        return self.learner.end_task(self._plain_batches)

    def _plain_batches(self) -> Iterator[Batch]:
        """The task's images in the order of the data set."""
        for begin, end in self.bounds:
            yield self._batch(np.tile(np.arange(begin, end), (len(self.members), 1)))

    def begin_task(self, task: int) -> None:
        """Fetch the task's images (those of the last one are freed), tell everybody, and make the expert."""
        self._enter(task)
        self.learner.begin_task(task)
        for learner in (self._random, self._multitask):
            if learner is not None:
                learner.begin_task(task)
        if self._expert is not None:
            self._expert.begin_task(0)

    def _enter(self, task: int) -> None:
        self._task = task
        self._images = []
        self._rows = np.stack([self.tasks.train(member)[task] for member in self.members])
        self._images = [self._train.gather(rows) for rows in self._rows]
        self._orders = (-1, self._rows[:, :0])
        if self.config.experts:
            fresh = [int(hash_words("expert", seed, task)) for seed in self._seeds]
            self._expert = self._made(f"expert {task}", fresh)

    def train(self, epoch: int, first: int, stop: int) -> tuple[Floats, int]:
        """Batches `first` to `stop` of an epoch of the task: (batch, repeat, TRACED, who), and samples replayed.

        Who is the learner and, if there is one, the expert.
        """
        if self._orders[0] != epoch:
            orders = [epoch_order(seed, self._task, epoch, self.tasks.n_train) for seed in self._seeds]
            self._orders = (epoch, np.stack(orders))
        own: list[tuple[StepResult, Rows]] = []
        expert: list[tuple[StepResult, Rows]] = []
        for batch in range(first, stop):
            begin, end = self.bounds[batch]
            images = self._batch(self._orders[1][:, begin:end])
            own.append((self.learner.observe(images, self._task, epoch, batch), images.labels))
            if self._expert is not None:
                expert.append((self._expert.observe(images, 0, epoch, batch), images.labels))
            if self._random is not None:
                self._random.observe(images, self._task, epoch, batch)
            if self._multitask is not None:
                self._multitask.observe(self._mixture(epoch, begin, end), self._task, epoch, batch)
        traces = [traced(results) for results in (own, expert) if results]
        return np.stack(traces, axis=3), sum(result.replayed for result, _ in own)

    def _batch(self, places: Rows) -> Batch:
        images = torch.stack([own[torch.from_numpy(at)] for own, at in zip(self._images, places, strict=True)])
        labels = self._labels[places]
        rows = np.take_along_axis(self._rows, places, 1)
        targets = torch.from_numpy(labels).to(self._device)
        return Batch(self._train.normalise(images), targets, labels, rows)

    def _mixture(self, epoch: int, begin: int, end: int) -> Batch:
        """As many images as the learner's batch, of all tasks: the next of a row of permutations of them all."""
        start = (self._task * self.config.training.epochs + epoch) * self.tasks.n_train + begin
        number = self.tasks.n_train * self.config.tasks.number
        turns, at = np.divmod(np.arange(start, start + end - begin), number)
        places = np.concatenate([self._mixed_order(turn)[:, at[turns == turn]] for turn in np.unique(turns)], 1)
        everything = np.stack([self.tasks.train(member).reshape(-1) for member in self.members])
        rows, labels = np.take_along_axis(everything, places, 1), self._labels[places % self.tasks.n_train]
        return Batch(self._train.inputs(rows), torch.from_numpy(labels).to(self._device), labels, rows)

    def _mixed_order(self, turn: int) -> Rows:
        if self._mixed[0] != turn:
            count = self.tasks.n_train * self.config.tasks.number
            self._mixed = (turn, np.stack([permutation(count, "multitask", seed, turn) for seed in self._seeds]))
        return self._mixed[1]

    def evaluate(self) -> dict[str, NDArray[Any]]:
        """Name -> (task, repeat): accuracy and loss of every learner on every test set; of the expert (repeat,).

        `alike` says of the learner whether it answers all images of a test set alike.

        Where examples are recorded also `examples/correct` and `examples/margin` of the learner (example, repeat): of
        all test sets, and of the train images that it is asked.
        """
        whole = {"": self.learner, "random_": self._random, "multitask_": self._multitask}
        learners = {prefix: learner for prefix, learner in whole.items() if learner is not None}
        shape = (len(self.members), self.config.tasks.number * self.tasks.n_test)
        right = {prefix: np.zeros(shape) for prefix in learners}
        losses = {prefix: np.zeros(shape) for prefix in learners}
        answers = np.zeros((*shape, self.config.tasks.classes_per_task))
        judged: list[dict[str, NDArray[Any]]] = []
        for place, inputs, labels in self._chunks(0, self.config.tasks.number):
            for prefix, learner in learners.items():
                logits = _logits(learner, inputs)
                right[prefix][:, place] = _is_right(logits, labels)
                losses[prefix][:, place] = _cross_entropy(logits, labels)
                if learner is self.learner:
                    answers[:, place] = logits
                    if self.config.recording.examples:
                        judged.append(judge_some(logits, labels))
        by_task = answers.reshape(len(self.members), self.config.tasks.number, self.tasks.n_test, -1)
        found: dict[str, NDArray[Any]] = {"alike": answers_alike(by_task.min(2), by_task.max(2), self.tasks.n_test).T}
        for prefix in learners:
            for name, values in (("accuracy", right[prefix]), ("loss", losses[prefix])):
                found[prefix + name] = values.reshape(len(self.members), -1, self.tasks.n_test).mean(2).T
        if self._expert is not None:
            own = [
                (_logits(self._expert, inputs), labels)
                for _, inputs, labels in self._chunks(self._task, self._task + 1)
            ]
            found["expert_accuracy"], found["expert_loss"] = (
                np.concatenate([judge(*part) for part in own], 1).mean(1) for judge in (_is_right, _cross_entropy)
            )
        judged += [judge_some(_logits(self.learner, inputs), labels) for inputs, labels in self._asked_chunks()]
        for name in judged[0] if judged else ():
            found[f"examples/{name}"] = np.concatenate([part[name] for part in judged], axis=1).T
        return found

    def _asked_chunks(self) -> Iterator[tuple[Tensor, Rows]]:
        """Inputs (repeat, some, ...) and labels (repeat, some) of the train images that the learner is asked."""
        rows, labels = self._asked
        size = max(1, _IMAGES_AT_ONCE // len(self.members))
        for start in range(0, rows.shape[1], size):
            place = slice(start, start + size)
            yield self._train.inputs(rows[:, place]), labels[:, place]

    def _chunks(self, first: int, stop: int) -> Iterator[tuple[slice, Tensor, Rows]]:
        """Test images of tasks `first` to `stop`: where they stand, inputs (repeat, some, ...), labels (repeat, some).

        Made from bytes a chunk at a time: all test sets of all repeats as floats would not fit into memory.
        """
        size = max(1, _IMAGES_AT_ONCE // len(self.members))
        last = stop * self.tasks.n_test
        for start in range(first * self.tasks.n_test, last, size):
            place = slice(start, min(start + size, last))
            inputs = self._test.inputs(self._test_rows[:, place])
            yield place, inputs, self._test_labels[:, place]

    def features(self) -> dict[str, NDArray[np.float32]]:
        """Layer -> (repeat, eval_set, sample, unit) of the learner on the probe samples."""
        layers = self.config.recording.features
        rows = np.stack(self._probes)
        found: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers}
        for place in range(rows.shape[1]):
            inputs = self._test.inputs(rows[:, place])
            _, maps = self.learner.gradients.read(inputs, layers)
            for layer in layers:
                found[layer].append(maps[layer].cpu().numpy())
        return {layer: np.stack(parts, axis=1) for layer, parts in found.items()}

    def current_weights(self) -> dict[str, NDArray[np.float32]]:
        """Name -> (repeat, ...) of the learner."""
        return {name: view.cpu().numpy().copy() for name, view in self.learner.weights.views.items()}

    def first_weights(self) -> dict[str, NDArray[np.float32]]:
        """Name -> (repeat, ...) of the learner, before any training."""
        return self.initial

    @property
    def space(self) -> Tensor:
        """Where gradients are written."""
        return self.learner.gradients.values

    @property
    def buffer_bytes(self) -> int:
        """What the learner's options keep."""
        return self.learner.buffer_bytes

    def memory(self) -> int:
        """The same, to ask for."""
        return self.buffer_bytes

    def state(self) -> dict[str, Any]:
        """All that a resumed group needs, copied."""
        return {"members": list(self.members), "task": self._task} | {
            name: learner.state() for name, learner in self._learners().items()
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state of a group of the same config and members."""
        if state["task"] >= 0:
            self._enter(state["task"])
        for name, learner in self._learners().items():
            learner.load_state(state[name])

    def _learners(self) -> dict[str, Learner]:
        all_of_them = {
            "learner": self.learner,
            "expert": self._expert,
            "random": self._random,
            "multitask": self._multitask,
        }
        return {name: learner for name, learner in all_of_them.items() if learner is not None}


def traced(results: Sequence[tuple[StepResult, Rows]]) -> Floats:
    """(batch, repeat, TRACED) of training batches and their labels. Batches of a size are worked out together."""
    parts: list[Floats] = []
    for _, some in itertools.groupby(results, lambda one: one[1].shape):
        of_a_size, labels = zip(*some, strict=True)
        logits = torch.stack([one.logits for one in of_a_size]).cpu().numpy().astype(np.float64)
        right = _is_right(logits, np.stack(labels))
        rewards = [one.reward for one in of_a_size if one.reward is not None]
        reward = torch.stack(rewards).cpu().numpy().astype(np.float64) if rewards else right
        right, reward = right.sum(2), np.where(np.isnan(right), np.nan, reward).sum(2)
        norms = [np.full(right.shape[1], np.nan) if one.norm is None else one.norm.cpu().numpy() for one in of_a_size]
        parts.append(np.stack([_cross_entropy(logits, np.stack(labels)).sum(2), right, reward, np.stack(norms)], 2))
    return np.concatenate(parts)


def _cross_entropy(logits: Floats, labels: Rows) -> Floats:
    """log Σ_k exp(z_k) - z_label of logits (..., class), labels (...,); not finite where a logit is not, unwarned."""
    with np.errstate(invalid="ignore", over="ignore"):
        above = logits - logits.max(-1, keepdims=True)
        found: Floats = np.log(np.exp(above).sum(-1)) - np.take_along_axis(above, labels[..., None], -1)[..., 0]
    return found


def _logits(learner: Learner, inputs: Tensor) -> Floats:
    """(repeat, sample, class)."""
    found: Floats = learner.gradients.read(inputs)[0].float().cpu().numpy().astype(np.float64)
    return found


def _is_right(logits: Floats, labels: Rows) -> Floats:
    """(...,): whether the largest logit (..., class) is the label's; NaN where a logit is not finite."""
    right: Floats = (logits.argmax(-1) == labels).astype(np.float64)
    right[~np.isfinite(logits).all(-1)] = np.nan
    return right


def groups_of_one(config: BinaryConfig, data: ImageData, members: Sequence[int], device: str) -> list[RepeatGroup]:
    """A group for each of the repeats; they train in turns, and share the space for gradients."""
    found: list[RepeatGroup] = []
    for member in members:
        found.append(RepeatGroup(config, data, [member], device, found[0].space if found else None))
    return found
