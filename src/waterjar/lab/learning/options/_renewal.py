"""Giving hidden units back to the beginning: new incoming weights, no outgoing ones."""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.lab.counter_hash import Word, hash_words
from waterjar.lab.learning.options._option import Context
from waterjar.lab.networks._units import UnitLayer


@torch.no_grad()
def renew(context: Context, layer: UnitLayer, repeat: int, units: Tensor, *words: Word) -> None:
    """Renew `units` (indices) of one repeat, in place.

    Incoming weights are drawn anew from the distribution that they began with, biases are 0, the scales of
    normalisations 1; outgoing weights are 0, so that the network's output changes only by what the units had added.
    Momenta of all these are forgotten. What is drawn for a unit hangs on the words, not on which others are renewed.
    """
    views = context.weights.views
    fresh = torch.empty(views[layer.incoming].shape[1:])
    seed = int(hash_words("renewed unit", context.role, context.seeds[repeat], layer.stage, *words))
    context.network.rule(fresh, torch.Generator().manual_seed(seed))
    views[layer.incoming][repeat, units] = fresh.to(views[layer.incoming].device)[units]
    if layer.bias is not None:
        views[layer.bias][repeat, units] = 0.0
    for name in layer.norms:
        views[name][repeat, units] = 1.0 if name.endswith(".weight") else 0.0
    layer.fan_out(views[layer.outgoing])[repeat, :, :, units] = 0.0
    for memory in context.optimiser.memories.values():
        momenta = context.weights.views_of(memory)
        for name in (layer.incoming, *([layer.bias] if layer.bias else []), *layer.norms):
            momenta[name][repeat, units] = 0.0
        layer.fan_out(momenta[layer.outgoing])[repeat, :, :, units] = 0.0
