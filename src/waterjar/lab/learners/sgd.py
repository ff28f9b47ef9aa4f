"""Plain stochastic gradient descent on whatever comes: the "naive" learner, which keeps nothing of earlier tasks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from waterjar.lab.learners._descent import Descent, DescentSettings, correct
from waterjar.lab.learners._protocol import Observation, Precision, Wants
from waterjar.lab.networks import Network


class Settings(DescentSettings):
    """The update rule, nothing more."""


class Sgd(Descent):
    """θ -= lr ∇ mean cross-entropy of the batch."""

    settings: Settings

    def __init__(
        self,
        network: Network,
        settings: Settings,
        *,
        seed: int,
        device: torch.device,
        precision: Precision,
        name: str = "sgd",
        wants: Wants = "sequence",
    ) -> None:
        super().__init__(name, network, settings, device=device, precision=precision, wants=wants)

    def observe(self, inputs: Tensor, labels: Tensor) -> Observation:
        """One step on the batch."""
        logits = self.logits(inputs)
        loss = functional.cross_entropy(logits, labels)
        self.backward(loss)
        return Observation(loss.detach(), correct(logits, labels), 0, self.step())


build = Sgd
