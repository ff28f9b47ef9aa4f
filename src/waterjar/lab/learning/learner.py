"""Weights that learn: an objective, an optimiser and options around the parameters of some repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import uniform
from waterjar.lab.learning import objectives, optimisers, options
from waterjar.lab.learning.gradients import Gradients, Precision
from waterjar.lab.learning.options import Batch, Batches, Context, Images, Option, Position
from waterjar.lab.learning.segments import lesson
from waterjar.lab.learning.weights import Weights
from waterjar.lab.networks import Network

Chosen = Sequence[tuple[str, Mapping[str, Any]]]
"""Options by name, each with its settings."""
NORM_EVERY = 8
"""Of so many batches of an epoch one, the first among them, tells the norm of its gradient. Others need not write their
gradients anywhere, if the update is nothing but θ -= rate g."""


@dataclass(frozen=True)
class Rule:
    """How weights learn."""

    objective: str = "sl"
    objective_settings: Mapping[str, Any] = field(default_factory=dict)
    optimiser: str = "sgd"
    optimiser_settings: Mapping[str, Any] = field(default_factory=dict)
    rates: tuple[float, float] = (0.01, 0.01)
    """Of the features and of the readout."""
    fresh_optimiser: bool = True
    """Forget momenta at the start of each task."""
    clip_norm: float | None = None
    """Scale the gradient of a repeat down to this norm where it is longer."""
    precision: Precision = "float32"
    norm_every: int = NORM_EVERY
    options: Chosen = ()


class StepResult(NamedTuple):
    """What one update tells, without making a device wait: of the batch, not of what was replayed beside it."""

    logits: Tensor
    """(repeat, batch, class), before the update."""
    reward: Tensor | None
    """(repeat, batch); None if the learner's answers are the greedy ones."""
    norm: Tensor | None
    """(repeat,): of the gradient with all that options add to it, before clipping; at some batches (`norm_every`)."""
    replayed: int
    """Samples beside those of the batch, of all repeats."""


class Learner:
    """R networks of one kind that learn side by side, each from its own batches.

    first: the networks that they begin as, one per repeat.
    role: who they are (`learner`, `expert 3` ...), a word for every random draw.
    images: where rows are images, if inputs follow from rows alone.
    space: working space for gradients, (repeat, param); learners that learn in turns may share one.
    """

    def __init__(
        self,
        rule: Rule,
        first: Sequence[Network],
        *,
        seeds: Sequence[int],
        role: str = "learner",
        device: torch.device | str = "cpu",
        images: Images | None = None,
        space: Tensor | None = None,
    ) -> None:
        structure, device = first[0], torch.device(device)
        self.rule = rule
        self._seeds = tuple(seeds)
        self._role = role
        self.weights = Weights(structure, len(seeds), device)
        self.weights.fill(first)
        self.rates = rule.rates
        """Of features and readout; assign to it for a schedule. It is part of the state."""
        self._optimiser = optimisers.make(rule.optimiser, rule.optimiser_settings, self.weights.values)
        self._objective = objectives.make(rule.objective, rule.objective_settings)
        self._state = {
            name: torch.full((len(seeds),), value, device=device) for name, value in self._objective.start().items()
        }
        of_repeat = self._of_repeat
        where = Context(structure, self.weights, self._optimiser, self._seeds, role, images, rule.objective, of_repeat)
        self._options = options.make(rule.options, where)
        self.options: list[Option] = list(self._options.values())
        wanted = {layer for option in self.options for layer in option.layers}
        layers = [layer for layer in structure.layer_names if layer in wanted]
        own = self.weights.rows() if space is None else space
        self.gradients = Gradients(
            structure,
            self.weights,
            self._objective,
            layers,
            own,
            precision=rule.precision,
            apart=any(option.apart for option in self.options),
        )
        regularised = any(type(option).regularise is not Option.regularise for option in self.options)
        changed = regularised or rule.clip_norm is not None
        self._direct = self.gradients.can_descend and self._optimiser.plain and not changed
        self._updates = 0
        self._no_draws = torch.zeros(len(seeds), 0, device=device)
        self._seeds_column = np.array(seeds, dtype=np.int64)[:, None]

    def _of_repeat(self, repeat: int) -> Network:
        return self.gradients.of_repeat(repeat)

    @property
    def network(self) -> Network:
        """That of the first repeat, with the weights that are being trained."""
        return self.gradients.of_repeat(0)

    @property
    def buffer_bytes(self) -> int:
        """What options keep beside the weights, of all repeats."""
        return sum(option.buffer_bytes for option in self.options)

    def begin_task(self, task: int) -> None:
        """Before the first batch of a task; `task` counts those that these weights have seen."""
        if self.rule.fresh_optimiser:
            self._optimiser.begin_task()
        for option in self.options:
            option.begin_task(Position(task, 0, 0, self._updates))

    def end_task(self, batches: Batches) -> int:
        """After the last batch of a task; gives how many samples of all repeats options have measured."""
        return sum(option.end_task(batches) for option in self.options)

    def observe(self, given: Batch, task: int, epoch: int, batch: int) -> StepResult:
        """One update of every repeat."""
        at = Position(task, epoch, batch, self._updates)
        current = given.inputs.shape[1]
        segments = [segment for option in self.options for segment in option.recall(current, at)]
        whole = lesson(given.inputs, given.targets, segments)
        draws = self._uniform(whole.samples, epoch, batch)
        norm: Tensor | None = None
        if self._direct and batch % self.rule.norm_every:
            found = self.gradients.compute(whole, draws, self._state, self.rates)
        else:
            found = self.gradients.compute(whole, draws, self._state)
            length = self._descend()
            norm = None if batch % self.rule.norm_every else length  # the same batches in every engine
        self._state = found.state
        logits = found.logits[:, :current]
        for option in self.options:
            option.after_update(found.activity, at)
        for option in self.options:
            option.offer(given, logits, at)
        self._updates += 1
        reward = None if found.reward is None else found.reward[:, :current]
        return StepResult(logits, reward, norm, (whole.samples - current) * len(self._seeds))

    @torch.no_grad()
    def _descend(self) -> Tensor:
        """By what the options make of the gradients; gives their norms before clipping, (repeat,)."""
        gradients = self.gradients.values
        for option in self.options:
            option.regularise(gradients)
        norm: Tensor = torch.linalg.vector_norm(gradients, dim=1)
        if self.rule.clip_norm is not None:
            gradients.mul_((self.rule.clip_norm / norm).clamp(max=1.0)[:, None])
        self._optimiser.step(self.weights.values, gradients, self.rates, self.weights.features)
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
            "buffers": [buffer.detach().clone() for buffer in self.gradients.network.buffers()],
            "optimiser": self._optimiser.state(),
            "learner": {name: values.clone() for name, values in self._state.items()},
            "options": {name: option.state() for name, option in self._options.items()},
            "updates": self._updates,
            "rates": list(self.rates),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state of a learner of the same rule and networks."""
        if state["weights"].shape != self.weights.values.shape:
            shapes = tuple(state["weights"].shape), tuple(self.weights.values.shape)
            raise WaterjarError(f"the state is of another network: its weights are {shapes[0]}, expected {shapes[1]}")
        self.weights.values.copy_(state["weights"])
        for buffer, kept in zip(self.gradients.network.buffers(), state["buffers"], strict=True):
            buffer.copy_(kept)
        self._optimiser.load_state(state["optimiser"])
        self._state = {name: values.to(self.weights.values.device) for name, values in state["learner"].items()}
        for name, option in self._options.items():
            option.load_state(state["options"][name])
        self._updates = state["updates"]
        features, readout = state["rates"]
        self.rates = (features, readout)


def try_options(rule: Rule, structure: Network) -> None:
    """Make the options around such a network: one that it cannot have is a `WaterjarError`."""
    Learner(rule, [structure], seeds=(0,))
