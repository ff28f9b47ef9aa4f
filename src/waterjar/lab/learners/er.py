"""Experience replay: each step also sees examples of a reservoir.

Robins, "Catastrophic forgetting, rehearsal and pseudorehearsal" (Connection Science, 1995); in this form Chaudhry et
al., "On tiny episodic memories in continual learning" (2019), algorithm 1:

    B_M ~ memory,    θ -= lr ∇ mean cross-entropy over B_n ∪ B_M,    memory <- reservoir(B_n)

The mean is over the union, so every example weighs the same. The two go through the network in ONE batch, as there
and in Mammoth: with batch norm they share their statistics.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from waterjar.lab.learners._descent import Descent, DescentSettings, correct
from waterjar.lab.learners._protocol import Observation, Precision, State
from waterjar.lab.learners._reservoir import BufferType, Reservoir
from waterjar.lab.networks import Network


class Settings(DescentSettings):
    """The update rule and the memory."""

    buffer_size: Annotated[int, Field(ge=1)] = 500
    minibatch_size: Annotated[int, Field(ge=1)] | None = None
    """Examples replayed a step; None for as many as the batch has."""
    buffer_dtype: BufferType = "float32"
    replay: Literal["always", "later_tasks"] = "always"
    """From the second batch on, as in the paper; or only once a second task has begun (the memory fills either way)."""


class Er(Descent):
    """SGD on the batch and a draw from the memory, together."""

    settings: Settings

    def __init__(
        self, network: Network, settings: Settings, *, seed: int, device: torch.device, precision: Precision
    ) -> None:
        super().__init__("er", network, settings, device=device, precision=precision)
        self.memory = Reservoir(
            settings.buffer_size, network.image_shape, seed=seed, dtype=settings.buffer_dtype, device=device
        )

    @property
    def buffer_bytes(self) -> int:
        """The memory, full or not."""
        return self.memory.n_bytes

    def observe(self, inputs: Tensor, labels: Tensor) -> Observation:
        """One step on the batch and its replay; then the memory sees the batch."""
        now = len(labels)
        replayed = 0
        seen, targets = inputs, labels
        if len(self.memory) and (self.settings.replay == "always" or self.tasks_begun > 1):
            drawn = self.memory.draw(self.settings.minibatch_size or now)
            replayed = len(drawn.labels)
            seen = torch.cat([inputs, drawn.inputs.to(inputs.dtype)])
            targets = torch.cat([labels, drawn.labels])
        logits = self.logits(seen)
        total = functional.cross_entropy(logits, targets)
        self.backward(total)
        norm = self.step()
        current = logits.detach()[:now]
        loss = functional.cross_entropy(current, labels) if replayed else total.detach()
        self.memory.add(inputs, labels, self.task)
        return Observation(loss, correct(current, labels), replayed, norm)

    def state(self) -> State:
        """The descent's, and the memory's."""
        return super().state() | {"memory": self.memory.state()}

    def load_state(self, state: State) -> None:
        """Back to a state."""
        super().load_state(state)
        self.memory.load_state(state["memory"])


build = Er
