"""What every learner can do, and what one of its steps tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel
from torch import Tensor

from waterjar.lab.learning.gradients import Precision
from waterjar.lab.networks import Network

__all__ = ["Learner", "Observation", "Precision", "Preset", "State", "Wants"]

Wants = Literal["sequence", "joint"]
"""Whether a learner takes the tasks one after the other, or all of them mixed."""

State = dict[str, Any]
"""Tensors, numbers, strings, None, and lists and dictionaries of them: `torch.load(weights_only=True)` reads it."""


class Observation(NamedTuple):
    """One step, told without making the device wait: turn the tensors into numbers once an epoch, not per step."""

    loss: Tensor
    """Mean cross-entropy of the current batch before the update, a scalar: no replay, no penalty in it."""
    correct: Tensor
    """How many of the current batch were right before the update, a scalar."""
    replayed: int
    """How many examples of the memory went through the network in this step."""
    gradient_norm: Tensor
    """Euclidean norm of the whole gradient (replay and penalty in it), before clipping, a scalar."""


class Learner(Protocol):
    """A network, how it is updated, and what is kept of earlier tasks.

    Batches are what the network sees: augmented, patched, normalised, on the learner's device.
    """

    @property
    def name(self) -> str:
        """Its module name."""
        ...

    @property
    def wants(self) -> Wants:
        """How it takes the tasks."""
        ...

    @property
    def network(self) -> Network:
        """The network it trains."""
        ...

    @property
    def settings(self) -> BaseModel:
        """Its hyper-parameters."""
        ...

    @property
    def learning_rate(self) -> float:
        """The present one; assign to it for a schedule. It is part of the state."""
        ...

    @learning_rate.setter
    def learning_rate(self, value: float) -> None: ...

    @property
    def buffer_bytes(self) -> int:
        """What it keeps to remember earlier tasks: replay memory, importances and anchors."""
        ...

    def begin_task(self, task: int) -> None:
        """Before the first batch of each task; after `load_state` in the middle of a task, do not call it."""
        ...

    def observe(self, inputs: Tensor, labels: Tensor, epoch: int = 0) -> Observation:
        """One update on a batch: inputs (batch, channel, height, width), labels (batch,) int64; `epoch` of the task."""
        ...

    def end_task(self, batches: Iterable[tuple[Tensor, Tensor]]) -> int:
        """After the last batch of each task, the last task too: what is kept must be complete for one more task.

        `batches` of the task are read only where a learner needs them. Gives the number of examples that went
        forward and backward through the network, so that they are counted; one that did so k times counts k.
        """
        ...

    def state(self) -> State:
        """All that a resumed learner needs to go on with the same bits. A copy: training on does not change it."""
        ...

    def load_state(self, state: State) -> None:
        """Go back to a state of a learner of the same name, settings and network."""
        ...


@dataclass(frozen=True)
class Preset:
    """Published hyper-parameters: those of the learner, and those that belong to the training around it."""

    settings: Mapping[str, object]
    training: Mapping[str, object] = field(default_factory=dict)
    """`n_epochs` (of each task) and `batch_size`; a study file that names the preset brings them, see the docs."""
