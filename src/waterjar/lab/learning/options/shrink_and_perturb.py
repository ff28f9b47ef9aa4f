"""Shrink and perturb: θ <- λ θ + p,  p ~ N(0, σ²) for every parameter.

Ash & Adams, "On warm-starting neural network training" (NeurIPS 2020), section 4: at the arrival of new data, which
here is the start of each task but the first. `when: step` does it after every update instead, with λ near 1 and a small
σ, as Dohare et al. (Nature 632, 2024) run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.counter_hash import hash_words
from waterjar.lab.learning.options._option import Context, Option, Position


class Settings(BaseModel):
    """How much, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    shrink: Annotated[float, Field(ge=0.0, le=1.0)] = 0.6
    """λ: 1 keeps the weights, 0 forgets them."""
    noise: Annotated[float, Field(ge=0.0)] = 0.01
    """σ."""
    when: Literal["task", "step"] = "task"


class ShrinkAndPerturb(Option):
    """Keeps nothing: the noise is a function of seed and moment."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def begin_task(self, at: Position) -> None:
        """Between tasks: what has not learned anything yet is left alone."""
        if self._settings.when == "task" and at.task > 0:
            self._apply(at)

    def after_update(self, activity: Mapping[str, Tensor], at: Position) -> None:
        """After every update, where asked."""
        if self._settings.when == "step":
            self._apply(at)

    @torch.no_grad()
    def _apply(self, at: Position) -> None:
        values = self._context.weights.values
        values.mul_(self._settings.shrink)
        for row, seed in zip(values, self._context.seeds, strict=True):
            words = ("shrink and perturb", self._context.role, seed, at.task, at.update)
            generator = torch.Generator().manual_seed(int(hash_words(*words)))
            noise = torch.empty(row.shape).normal_(generator=generator)
            row.add_(noise.to(row.device), alpha=self._settings.noise)


build = ShrinkAndPerturb
