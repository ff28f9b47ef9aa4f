"""Stochastic gradient descent, as torch.optim.SGD:  g += weight_decay θ;  v = momentum v + g;  θ -= lr v.

With Nesterov's momentum it is  θ -= lr (g + momentum v).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, cast

import torch
from pydantic import ConfigDict, Field, model_validator
from torch import Tensor

from waterjar.lab.grown import Grown


class Settings(Grown):
    """The update rule."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    ADDED: ClassVar = ("nesterov",)

    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    """On all parameters, biases and normalisations too."""
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov_has_momentum(self) -> Settings:
        if self.nesterov and self.momentum == 0.0:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class Sgd:
    """The rule and its velocity (none without momentum)."""

    def __init__(self, settings: Settings, values: Tensor) -> None:
        self._settings = settings
        self._velocity = torch.zeros_like(values) if settings.momentum else None

    @property
    def plain(self) -> bool:
        """Without momentum and decay."""
        return not (self._settings.momentum or self._settings.weight_decay)

    @property
    def memories(self) -> dict[str, Tensor]:
        """The velocity."""
        return {} if self._velocity is None else {"velocity": self._velocity}

    def step(self, values: Tensor, gradients: Tensor, rates: tuple[float, float], features: int) -> None:
        """One update."""
        if self._settings.weight_decay:
            gradients.add_(values, alpha=self._settings.weight_decay)
        direction = gradients
        if self._velocity is not None:
            direction = self._velocity.mul_(self._settings.momentum).add_(gradients)
            if self._settings.nesterov:
                direction = gradients.add_(direction, alpha=self._settings.momentum)
        if rates[0] == rates[1]:
            values.add_(direction, alpha=-rates[0])
            return
        for part, rate in zip((slice(0, features), slice(features, None)), rates, strict=True):
            values[:, part].add_(direction[:, part], alpha=-rate)

    def begin_task(self) -> None:
        """Without velocity."""
        if self._velocity is not None:
            self._velocity.zero_()

    def state(self) -> dict[str, object]:
        """The velocity, copied."""
        return {name: tensor.clone() for name, tensor in self.memories.items()}

    def load_state(self, state: Mapping[str, object]) -> None:
        """Back to a state."""
        for name, tensor in self.memories.items():
            tensor.copy_(cast(Tensor, state[name]))


build = Sgd
