"""Dark experience replay: the network shall also give the logits that it once gave.

Buzzega, Boschini, Porrello, Abati & Calderara, "Dark experience for general continual learning: a strong, simple
baseline" (NeurIPS 2020), the objective of DER++:

    L = CE(y, f(x))  +  alpha |z' - h(x')|^2  +  beta CE(y'', f(x''))

with (x', z') and (x'', y'') two independent draws from a reservoir that keeps the logits h(x) of each example as they
were when it was seen, in training mode, before the update.

The square is the MEAN over classes in the authors' code (their published alphas belong to it, and the default here);
the equation as printed is the sum: `distance`.

The authors pass batch, first and second draw through the network one after the other. Without batch norm, one pass of
all three gives the same gradient (to rounding) and is faster. With it, it would not: the statistics would be those of
the mixture. `forward="auto"` goes together only where it makes no difference.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from waterjar.lab.learners._descent import Descent, DescentSettings, correct
from waterjar.lab.learners._protocol import Observation, Precision, Preset, State
from waterjar.lab.learners._reservoir import BufferType, Reservoir
from waterjar.lab.networks import Network, normalises_by_batch


class Settings(DescentSettings):
    """The update rule, the memory and the two weights."""

    alpha: Annotated[float, Field(ge=0.0)] = 0.1
    """Weight of the distance to the old logits."""
    beta: Annotated[float, Field(ge=0.0)] = 0.5
    """Weight of the cross-entropy on replayed labels."""
    buffer_size: Annotated[int, Field(ge=1)] = 500
    minibatch_size: Annotated[int, Field(ge=1)] | None = None
    """Examples in each of the two draws of a step; None for as many as the batch has."""
    distance: Literal["mean", "sum"] = "mean"
    """|z - h|^2 over classes."""
    forward: Literal["auto", "separate", "together"] = "auto"
    buffer_dtype: BufferType = "float32"
    replay: Literal["always", "later_tasks"] = "always"
    """From the second batch on, as in the paper; or only once a second task has begun (the memory fills either way)."""


PRESETS = {
    "derpp_einstellung": Preset(
        settings={"alpha": 0.1, "beta": 0.5, "buffer_size": 500, "lr": 0.01},
        training={"n_epochs": 100, "batch_size": 32},
    )
}


class Derpp(Descent):
    """SGD on the three terms."""

    settings: Settings

    def __init__(
        self, network: Network, settings: Settings, *, seed: int, device: torch.device, precision: Precision
    ) -> None:
        super().__init__("derpp", network, settings, device=device, precision=precision)
        self.memory = Reservoir(
            settings.buffer_size,
            network.image_shape,
            seed=seed,
            n_logits=network.n_classes,
            dtype=settings.buffer_dtype,
            device=device,
        )
        self._together = settings.forward == "together" or (
            settings.forward == "auto" and not normalises_by_batch(network)
        )

    @property
    def buffer_bytes(self) -> int:
        """The memory, full or not."""
        return self.memory.n_bytes

    def observe(self, inputs: Tensor, labels: Tensor) -> Observation:
        """One step on the batch and two draws; then the memory sees the batch and its logits."""
        replayed = 0
        if len(self.memory) and (self.settings.replay == "always" or self.tasks_begun > 1):
            count = self.settings.minibatch_size or len(labels)
            dark, plain = self.memory.draw(count), self.memory.draw(count)
            replayed = len(dark.labels) + len(plain.labels)
            parts = self._forward([inputs, dark.inputs.to(inputs.dtype), plain.inputs.to(inputs.dtype)])
            logits = parts[0]
            loss = functional.cross_entropy(logits, labels)
            assert dark.logits is not None  # this memory keeps them
            total = (
                loss
                + self.settings.alpha * self._distance(parts[1], dark.logits)
                + self.settings.beta * functional.cross_entropy(parts[2], plain.labels)
            )
        else:
            logits = self.logits(inputs)
            loss = total = functional.cross_entropy(logits, labels)
        self.backward(total)
        norm = self.step()
        self.memory.add(inputs, labels, self.task, logits.detach())
        return Observation(loss.detach(), correct(logits, labels), replayed, norm)

    def state(self) -> State:
        """The descent's, and the memory's."""
        return super().state() | {"memory": self.memory.state()}

    def load_state(self, state: State) -> None:
        """Back to a state."""
        super().load_state(state)
        self.memory.load_state(state["memory"])

    def _forward(self, inputs: list[Tensor]) -> list[Tensor]:
        if self._together:
            return list(torch.split(self.logits(torch.cat(inputs)), [len(part) for part in inputs]))
        return [self.logits(part) for part in inputs]

    def _distance(self, logits: Tensor, remembered: Tensor) -> Tensor:
        mean = functional.mse_loss(logits, remembered.to(logits.dtype))
        return mean if self.settings.distance == "mean" else mean * logits.shape[1]


build = Derpp
