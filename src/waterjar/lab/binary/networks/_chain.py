"""Blocks that the networks here are made of."""

from __future__ import annotations

from torch import nn

from waterjar.lab.networks.small_cnn import FlattenPixels

__all__ = ["FlattenPixels", "dense"]


def dense(units: int, wide: int, *, layer_norm: bool, first: nn.Module | None = None) -> nn.Sequential:
    """Linear, layer norm where asked, ReLU; `first` goes before them."""
    norm = [nn.LayerNorm(wide)] if layer_norm else []
    before = [] if first is None else [first]
    return nn.Sequential(*before, nn.Linear(units, wide), *norm, nn.ReLU(inplace=True))
