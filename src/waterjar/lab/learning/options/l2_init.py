"""Regenerative regularisation: pull the weights to where they began, not to 0.

Kumar, Marklund & Van Roy, "Maintaining plasticity in continual learning via regenerative regularization"
(arXiv:2308.11958, 2023), "L2 Init":  loss + λ |θ - θ_0|²,  whose gradient is  2 λ (θ - θ_0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.learning.options._option import Context, Option


class Settings(BaseModel):
    """How strong the pull is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    strength: Annotated[float, Field(gt=0.0)] = 1e-3
    """λ."""


class L2Init(Option):
    """Knows where the weights began."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._strength = settings.strength
        self._weights = context.weights
        self._first = context.weights.values.clone()

    @property
    def buffer_bytes(self) -> int:
        """The first weights."""
        return self._first.nbytes

    def regularise(self, gradients: Tensor) -> None:
        """g += 2 λ (θ - θ_0)."""
        gradients.add_(self._weights.values, alpha=2 * self._strength)
        gradients.sub_(self._first, alpha=2 * self._strength)

    def state(self) -> dict[str, Any]:
        """The first weights."""
        return {"first": self._first.clone()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
        self._first.copy_(state["first"])


build = L2Init
