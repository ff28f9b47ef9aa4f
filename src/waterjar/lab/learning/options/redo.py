"""ReDo: recycle dormant units.

Sokar et al., "The dormant neuron phenomenon in deep reinforcement learning" (ICML 2023), definition 3.1, algorithm 1.
The score of unit i of a layer with H units is its mean activation, relative to its layer's,

    s_i = E_x |h_i(x)| / (1/H Σ_k E_x |h_k(x)|),

and it is dormant if s_i <= τ. Every F updates, dormant units get new incoming weights and outgoing weights 0. The mean
is over the batch of that update (and over the pixels of a channel). In a layer that is silent as a whole, 0/0 counts
as dormant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.learning.options._option import Context, Option, Position
from waterjar.lab.learning.options._renewal import renew
from waterjar.lab.networks._units import unit_layers


class Settings(BaseModel):
    """The names of the paper."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    threshold: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """τ."""
    every: Annotated[int, Field(ge=1)] = 1000
    """F, in updates."""


def dormant(activity: Tensor, threshold: float) -> Tensor:
    """(repeat, unit): whether mean |activation| (repeat, unit) is at most τ times its layer's mean.

    >>> dormant(torch.tensor([[0.0, 0.1, 2.9]]), 0.1).tolist()
    [[True, True, False]]
    """
    return activity <= threshold * activity.mean(1, keepdim=True)


class Redo(Option):
    """Keeps nothing: updates are counted by who trains."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._layers = unit_layers(context.network, "redo")
        self.layers = tuple(layer.stage for layer in self._layers)

    @torch.no_grad()
    def after_update(self, activity: Mapping[str, Tensor], at: Position) -> None:
        """Every F updates; `moment.update` counts those before this one."""
        if (at.update + 1) % self._settings.every:
            return
        for layer in self._layers:
            asleep = dormant(activity[layer.stage], self._settings.threshold)
            for repeat, which in enumerate(asleep):
                units = which.nonzero()[:, 0]
                if len(units):
                    renew(self._context, layer, repeat, units, "redo", at.update)


build = Redo
