"""Supervised learning: the mean cross-entropy of the batch, whose gradient by the logits is (softmax - label) / n."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from waterjar.lab.learning.objectives import Outcome


class Settings(BaseModel):
    """There is nothing to set."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Supervised:
    """-mean log softmax(logits)[label]."""

    draws = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def start(self) -> dict[str, float]:
        """Nothing is kept."""
        return {}

    def judge(self, logits: Tensor, labels: Tensor, uniform: Tensor, state: Mapping[str, Tensor]) -> Outcome:
        """(p - 1[label]) / n."""
        minus_one = torch.full_like(labels, -1.0, dtype=logits.dtype)
        missed = torch.softmax(logits, 2).scatter_add(2, labels[..., None], minus_one[..., None])
        return Outcome(missed / logits.shape[1], {})


build = Supervised
