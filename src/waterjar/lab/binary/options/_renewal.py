"""Giving hidden units back to the beginning: new incoming weights, no outgoing ones."""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.lab.binary.networks._units import UnitLayer
from waterjar.lab.binary.options._option import Surroundings
from waterjar.lab.counter_hash import Word, hash_words


@torch.no_grad()
def renew(where: Surroundings, layer: UnitLayer, repeat: int, units: Tensor, *words: Word) -> None:
    """Renew `units` (indices) of one repeat, in place.

    Incoming weights are drawn anew from the distribution that they began with, biases are 0, the scales of
    normalisations 1; outgoing weights are 0, so that the network's output changes only by what the units had added.
    Momenta of all these are forgotten. What is drawn for a unit hangs on the words, not on which others are renewed.
    """
    views = where.weights.views
    fresh = torch.empty(views[layer.incoming].shape[1:])
    seed = int(hash_words("renewed unit", where.role, where.seeds[repeat], layer.stage, *words))
    where.network.rule(fresh, torch.Generator().manual_seed(seed))
    views[layer.incoming][repeat, units] = fresh.to(views[layer.incoming].device)[units]
    if layer.bias is not None:
        views[layer.bias][repeat, units] = 0.0
    for name in layer.norms:
        views[name][repeat, units] = 1.0 if name.endswith(".weight") else 0.0
    layer.fan_out(views[layer.outgoing])[repeat, :, :, units] = 0.0
    for memory in where.optimiser.memories.values():
        momenta = where.weights.views_of(memory)
        for name in (layer.incoming, *([layer.bias] if layer.bias else []), *layer.norms):
            momenta[name][repeat, units] = 0.0
        layer.fan_out(momenta[layer.outgoing])[repeat, :, :, units] = 0.0
