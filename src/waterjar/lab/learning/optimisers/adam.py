"""Adam (Kingma & Ba, ICLR 2015, algorithm 1), as torch.optim.Adam; with `weight_decay` decoupled, AdamW.

    m = b1 m + (1 - b1) g,    v = b2 v + (1 - b2) g²,    θ -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

(Loshchilov & Hutter, ICLR 2019: θ -= lr weight_decay θ, before the step.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, cast

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

Decay = Annotated[float, Field(ge=0.0, lt=1.0)]


class Settings(BaseModel):
    """The update rule."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    beta1: Decay = 0.9
    beta2: Decay = 0.999
    eps: Annotated[float, Field(gt=0.0)] = 1e-8
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0


class Adam:
    """The rule, its two means, and how many steps they are over."""

    def __init__(self, settings: Settings, values: Tensor) -> None:
        self._settings = settings
        self._mean, self._square = torch.zeros_like(values), torch.zeros_like(values)
        self._steps = 0

    plain = False

    @property
    def memories(self) -> dict[str, Tensor]:
        """Both means."""
        return {"mean": self._mean, "square": self._square}

    def step(self, values: Tensor, gradients: Tensor, rates: tuple[float, float], features: int) -> None:
        """One update."""
        rule = self._settings
        self._steps += 1
        self._mean.lerp_(gradients, 1 - rule.beta1)
        self._square.mul_(rule.beta2).addcmul_(gradients, gradients, value=1 - rule.beta2)
        first, second = 1 - rule.beta1**self._steps, 1 - rule.beta2**self._steps
        spread = torch.sqrt(self._square, out=gradients).div_(math.sqrt(second)).add_(rule.eps)
        for part, rate in zip((slice(0, features), slice(features, None)), rates, strict=True):
            if rule.weight_decay:
                values[:, part].mul_(1 - rate * rule.weight_decay)
            values[:, part].addcdiv_(self._mean[:, part], spread[:, part], value=-rate / first)

    def begin_task(self) -> None:
        """From the beginning."""
        self._steps = 0
        for tensor in self.memories.values():
            tensor.zero_()

    def state(self) -> dict[str, object]:
        """Means and step, copied."""
        return {"steps": self._steps, **{name: tensor.clone() for name, tensor in self.memories.items()}}

    def load_state(self, state: Mapping[str, object]) -> None:
        """Back to a state."""
        self._steps = cast(int, state["steps"])
        for name, tensor in self.memories.items():
            tensor.copy_(cast(Tensor, state[name]))


build = Adam
