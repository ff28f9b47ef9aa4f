"""Continual backpropagation: every now and then, the least useful mature unit of a layer starts anew.

Dohare et al., "Loss of plasticity in deep continual learning" (Nature 632, 2024), algorithm 1 and eq. 1. After each
update, for each hidden layer l with units i:

    age_i += 1
    u_i = η u_i + (1 - η) |h_i| Σ_k |w_ik|          h: activation, w_ik: weights that lead away from the unit
    c += replacement_rate · (number of units with age > maturity)
    if c > 1: the mature unit with the smallest u_i gets new incoming weights, outgoing weights 0, u_i = 0, age_i = 0,
              and c -= 1

Here |h_i| is the mean over the batch (and over the pixels of a channel, whose w_ik are all its weights to the next
layer). Renewed units lose their optimiser's momenta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.learning.options._option import Context, Option, Position
from waterjar.lab.learning.options._renewal import renew
from waterjar.lab.networks._units import UnitLayer, unit_layers


class Settings(BaseModel):
    """The names of the paper."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    replacement_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-4
    """ρ: share of the mature units of a layer that is replaced at each update."""
    maturity: Annotated[int, Field(ge=0)] = 100
    """m: updates during which a new unit is left in peace."""
    decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.99
    """η: of the running mean of the utility."""


class ContinualBackprop(Option):
    """Utility, age (repeat, unit) and the replacements due (repeat,) of each hidden layer."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._layers = unit_layers(context.network, "continual_backprop")
        self.layers = tuple(layer.stage for layer in self._layers)
        repeats, device = len(context.seeds), context.weights.values.device
        self.utility = {one.stage: torch.zeros(repeats, one.units, device=device) for one in self._layers}
        self.age = {name: torch.zeros_like(utility) for name, utility in self.utility.items()}
        # float64: a rate of 1e-5 is added ten thousand times before it makes one
        self.due = {name: torch.zeros(repeats, dtype=torch.float64) for name in self.layers}

    @property
    def buffer_bytes(self) -> int:
        """Utilities and ages."""
        return sum(tensor.nbytes for kept in (self.utility, self.age, self.due) for tensor in kept.values())

    @torch.no_grad()
    def after_update(self, activity: Mapping[str, Tensor], at: Position) -> None:
        """Algorithm 1, all repeats of a layer at once; renewals one by one, they are rare."""
        for layer in self._layers:
            name = layer.stage
            self.age[name] += 1
            worth = activity[name] * self._outgoing(layer)
            self.utility[name].mul_(self._settings.decay).add_(worth, alpha=1 - self._settings.decay)
            mature = self.age[name] > self._settings.maturity
            self.due[name] += self._settings.replacement_rate * mature.sum(1, dtype=torch.float64).cpu()
            ripe = (self.due[name] > 1) & mature.any(1).cpu()
            if not ripe.any():
                continue
            worst = self.utility[name].masked_fill(~mature, torch.inf).argmin(1)
            for repeat in ripe.nonzero()[:, 0].tolist():
                unit = worst[repeat : repeat + 1]
                renew(self._context, layer, repeat, unit, "continual backprop", at.update)
                self.utility[name][repeat, unit] = 0.0
                self.age[name][repeat, unit] = 0.0
                self.due[name][repeat] -= 1

    def _outgoing(self, layer: UnitLayer) -> Tensor:
        """(repeat, unit): Σ_k |w_ik|."""
        return layer.fan_out(self._context.weights.views[layer.outgoing]).abs().sum((1, 2, 4))

    def state(self) -> dict[str, Any]:
        """All of it, copied."""
        kept = {"utility": self.utility, "age": self.age, "due": self.due}
        return {key: {name: tensor.clone() for name, tensor in tensors.items()} for key, tensors in kept.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
        for key, tensors in (("utility", self.utility), ("age", self.age), ("due", self.due)):
            for name, tensor in tensors.items():
                tensor.copy_(state[key][name])


build = ContinualBackprop
