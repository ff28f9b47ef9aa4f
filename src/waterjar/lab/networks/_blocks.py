"""Blocks that several networks are made of."""

from __future__ import annotations

from torch import Tensor, nn


class FlattenPixels(nn.Module):
    """Maps (batch, channel, height, width) to units (batch, height * width * channel): pixel after pixel.

    That is how the maps of convolutions lie in memory here. Any other order would copy them, and their gradients again.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Units (batch, unit)."""
        return maps.permute(0, 2, 3, 1).flatten(1)


def dense(units: int, wide: int, *, layer_norm: bool, first: nn.Module | None = None) -> nn.Sequential:
    """Linear, layer norm where asked, ReLU; `first` goes before them."""
    norm = [nn.LayerNorm(wide)] if layer_norm else []
    before = [] if first is None else [first]
    return nn.Sequential(*before, nn.Linear(units, wide), *norm, nn.ReLU(inplace=True))
