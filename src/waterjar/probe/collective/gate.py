"""The gate of a mixture of experts: how much each expert counts for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError


@dataclass(frozen=True)
class Gate:
    """A module that takes a batch and gives (sample, expert), of which the `top_k` largest are used."""

    module: nn.Module
    top_k: int

    def weights(self, x: Any, experts: int) -> Tensor:
        """(expert, sample): softmax of what the gate gives, or that itself where it is shares already."""
        said: Any = self.module(x)
        said = said[0] if isinstance(said, tuple) else said
        if said.ndim != 2 or said.shape[1] != experts:
            raise WaterjarError(f"the gate gives {tuple(said.shape)}: expected (sample, expert) with {experts} experts")
        sums = said.sum(dim=1)
        is_share = bool((said >= 0).all()) and bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4))
        return (said if is_share else torch.softmax(said, dim=1)).T

    def chosen(self, weights: Tensor) -> Tensor:
        """The `top_k` largest weights of each sample, scaled to sum to 1 again; (expert, sample) -> same.

        >>> Gate(nn.Identity(), 2).chosen(torch.tensor([[0.5], [0.3], [0.2]])).T
        tensor([[0.6250, 0.3750, 0.0000]])
        """
        if self.top_k < len(weights):
            kept = torch.zeros_like(weights, dtype=torch.bool).scatter(0, weights.topk(self.top_k, dim=0).indices, True)
            weights = torch.where(kept, weights, torch.zeros_like(weights))
        return weights / weights.sum(dim=0)

    def routes(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """(sample, slot 1, route): which experts, the heaviest first, and their weights."""
        heavy = self.chosen(weights).T.topk(min(self.top_k, len(weights)), dim=1)
        return heavy.indices[:, None, :], heavy.values[:, None, :]
