"""Weights that learn: a learner, an optimiser and options around the parameters of some repeats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab import networks
from waterjar.lab.binary import objectives, optimisers, options
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.gradients import Gradients
from waterjar.lab.binary.options import Context, Option, Position
from waterjar.lab.binary.pixels import Pixels
from waterjar.lab.binary.weights import Weights, aligned_rows
from waterjar.lab.counter_hash import uniform
from waterjar.lab.networks import Network

Rows = NDArray[np.int64]
NORM_EVERY = 8
"""Of so many batches of an epoch one, the first among them, tells the norm of its gradient. Others need not write their
gradients anywhere, if the update is nothing but θ -= rate g."""


class Batch(NamedTuple):
    """One batch of every repeat."""

    inputs: Tensor
    """(repeat, batch, channel, height, width), normalised."""
    rows: Rows
    """(repeat, batch): rows of the train images."""
    labels: Rows
    """(repeat, batch)"""
    targets: Tensor
    """The labels, on the device."""


class StepResult(NamedTuple):
    """What one update tells, without making a device wait: of the batch, not of what was replayed beside it."""

    logits: Tensor
    """(repeat, batch, class), before the update."""
    reward: Tensor | None
    """(repeat, batch); None if the learner's answers are the greedy ones."""
    norm: Tensor | None
    """(repeat,): of the gradient with all that options add to it, at some batches (`NORM_EVERY`)."""
    replayed: int
    """Samples of earlier batches, of all repeats."""


class Learner:
    """R networks of one kind that learn side by side, each from its own batches.

    role: who they are (`learner`, `expert 3` ...), a word for every random draw.
    first_seeds: whose networks they begin as, one per repeat.
    space: working space for gradients, (repeat, param); learners that learn in turns may share one.
    """

    def __init__(
        self,
        config: BinaryConfig,
        structure: Network,
        pixels: Pixels,
        *,
        seeds: Sequence[int],
        first_seeds: Sequence[int],
        role: str,
        device: torch.device,
        space: Tensor | None = None,
        frozen_features: bool = False,
        with_options: bool = True,
    ) -> None:
        self._config = config
        self._pixels = pixels
        self._seeds = tuple(seeds)
        self._role = role
        self.weights = Weights(structure, len(seeds), device)
        self.weights.fill([first_network(config, structure.image_shape, seed) for seed in first_seeds])
        rule = config.training
        self._rates = (0.0 if frozen_features else rule.lr_features, rule.lr_readout)
        self._optimiser = optimisers.make(rule.optimiser.name, rule.optimiser.settings, self.weights.values)
        self._objective = objectives.make(config.learner, config.learner_settings)
        self._state = {
            name: torch.full((len(seeds),), value, device=device) for name, value in self._objective.start().items()
        }
        where = Context(structure, self.weights, self._optimiser, self._seeds, role, pixels.n_bytes)
        self._options = options.make(config.chosen_options if with_options else [], where)
        wanted = {layer for option in self._options for layer in option.layers}
        layers = [layer for layer in structure.layer_names if layer in wanted]
        own = aligned_rows(len(seeds), self.weights.values.shape[1], device) if space is None else space
        self.gradients = Gradients(structure, self.weights, self._objective, layers, own)
        regularised = any(type(option).regularise is not Option.regularise for option in self._options)
        self._direct = self.gradients.can_descend and self._optimiser.plain and not regularised
        self._updates = 0
        self._no_draws = torch.zeros(len(seeds), 0, device=device)
        self._seeds_column = np.array(seeds, dtype=np.int64)[:, None]

    @property
    def buffer_bytes(self) -> int:
        """What options keep beside the weights, of all repeats."""
        return sum(option.buffer_bytes for option in self._options)

    def begin_task(self, task: int) -> None:
        """Before the first batch of a task; `task` counts those that these weights have seen."""
        if self._config.training.fresh_optimiser:
            self._optimiser.begin_task()
        for option in self._options:
            option.begin_task(Position(task, 0, 0, self._updates))

    def observe(self, given: Batch, task: int, epoch: int, batch: int) -> StepResult:
        """One update of every repeat."""
        at = Position(task, epoch, batch, self._updates)
        inputs, targets = given.inputs, given.targets
        current = inputs.shape[1]
        for option in self._options:
            more = option.recall(current, at)
            if more is not None:
                images = self._pixels.normalise(self._pixels.gather(more.rows))
                inputs = torch.cat([inputs, images], 1)
                targets = torch.cat([targets, torch.from_numpy(more.labels).to(targets.device)], 1)
        total = inputs.shape[1]
        draws = self._uniform(total, epoch, batch)
        norm: Tensor | None = None
        if self._direct and batch % NORM_EVERY:
            found = self.gradients.compute(inputs, targets, draws, self._state, self._rates)
        else:
            found = self.gradients.compute(inputs, targets, draws, self._state)
            length = self._descend()
            norm = None if batch % NORM_EVERY else length  # the same batches in every engine
        self._state = found.state
        for option in self._options:
            option.after_update(found.activity, at)
        for option in self._options:
            option.offer(given.rows, given.labels, at)
        self._updates += 1
        reward = None if found.reward is None else found.reward[:, :current]
        return StepResult(found.logits[:, :current], reward, norm, (total - current) * len(self._seeds))

    @torch.no_grad()
    def _descend(self) -> Tensor:
        """By what the options make of the gradients; gives their norms, (repeat,)."""
        gradients = self.gradients.values
        for option in self._options:
            option.regularise(gradients)
        norm: Tensor = torch.linalg.vector_norm(gradients, dim=1)
        self._optimiser.step(self.weights.values, gradients, self._rates, self.weights.features)
        return norm

    def _uniform(self, count: int, epoch: int, batch: int) -> Tensor:
        """(repeat, sample): what the learner's chances hang on; a function of the moment, not of what ran before."""
        if not self._objective.draws:
            if self._no_draws.shape[1] != count:
                self._no_draws = torch.zeros(len(self._seeds), count, device=self.weights.values.device)
            return self._no_draws
        words = ("action", self._role, self._seeds_column, self._updates, epoch, batch, np.arange(count)[None])
        return torch.from_numpy(uniform(*words)).float().to(self.weights.values.device)

    def state(self) -> dict[str, Any]:
        """All that a resumed learner needs, copied."""
        return {
            "weights": self.weights.values.clone(),
            "optimiser": self._optimiser.state(),
            "learner": {name: values.clone() for name, values in self._state.items()},
            "options": [option.state() for option in self._options],
            "updates": self._updates,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state of a learner of the same config."""
        self.weights.values.copy_(state["weights"])
        self._optimiser.load_state(state["optimiser"])
        self._state = {name: values.to(self.weights.values.device) for name, values in state["learner"].items()}
        for option, kept in zip(self._options, state["options"], strict=True):
            option.load_state(kept)
        self._updates = state["updates"]


def try_options(config: BinaryConfig, structure: Network) -> None:
    """Make the options around such a network: one that it cannot have is a `WaterjarError`."""
    device = torch.device("cpu")
    weights = Weights(structure, 1, device)
    optimiser = optimisers.make(config.training.optimiser.name, config.training.optimiser.settings, weights.values)
    where = Context(structure, weights, optimiser, (0,), "learner", math.prod(structure.image_shape))
    options.make(config.chosen_options, where)


def first_network(config: BinaryConfig, image_shape: tuple[int, int, int], seed: int) -> Network:
    """The network that a seed begins with."""
    network = networks.build(
        config.network,
        n_classes=config.tasks.classes_per_task,
        image_shape=image_shape,
        seed=seed,
        **config.full_network_settings,
    )
    networks.check_without_averages(network, config.network)
    return network
