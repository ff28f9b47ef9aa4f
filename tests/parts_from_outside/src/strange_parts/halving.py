"""A learner: sgd whose rate is halved when a task begins."""

from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab import learners
from waterjar.lab.learners import Learner, Precision
from waterjar.lab.networks import Network


class Settings(BaseModel):
    """The rate before the first task."""

    model_config = ConfigDict(extra="forbid")
    lr: float = Field(0.1, gt=0)


class Halving:
    """Does what sgd does, but for its rate."""

    def __init__(self, inner: Learner, settings: Settings) -> None:
        self._inner, self.settings, self.name = inner, settings, "halving"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def begin_task(self, task: int) -> None:
        """Halve the rate."""
        self._inner.begin_task(task)
        self._inner.learning_rate /= 2


def build(network: Network, settings: Settings, *, seed: int, device: torch.device, precision: Precision) -> "Halving":
    """Around waterjar's own sgd."""
    return Halving(
        learners.make("sgd", network, seed=seed, device=device, precision=precision, lr=settings.lr), settings
    )
