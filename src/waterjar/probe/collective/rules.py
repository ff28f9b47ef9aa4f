"""How independent streams make one answer: mean probability, mean logit, vote, or a sum; with all of them or with some.

All rules are averages over streams of something that each stream says by itself, so that all coalitions of a batch are
one matrix product: (coalition, stream) x (stream, sample, class).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from waterjar.errors import WaterjarError, unknown_name

RULES = ("mean_probability", "mean_logit", "vote")
"""Those that a user may name; an adapter may also have `sum_logit`, where a missing stream is a missing summand."""


def check_rule(rule: str) -> str:
    """A rule by its name."""
    if rule not in (*RULES, "sum_logit"):
        raise unknown_name("rule", rule, RULES)
    return rule


def contributions(logits: Tensor, rule: str) -> Tensor:
    """What each stream puts into the average: its probabilities, its logits or its vote. (..., class) -> same."""
    if rule == "mean_probability":
        return torch.softmax(logits, dim=-1)
    if rule == "vote":
        return functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    return logits


def as_logits(mixed: Tensor, rule: str) -> Tensor:
    """The average as logits whose softmax is what the collective says: the logarithm of probabilities and of votes."""
    return mixed.log() if rule in ("mean_probability", "vote") else mixed


def combine(logits: Tensor, rule: str, weights: Tensor | None = None) -> Tensor:
    """One answer of all streams: (stream, sample, class) -> (sample, class).

    `weights` (stream, sample) are those of a mixture of experts, and sum to 1. A class for which no stream votes has
    the logit -inf: nothing is clipped.

    >>> said = torch.tensor([[[2.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
    >>> combine(said, "vote").exp()
    tensor([[0.3333, 0.6667]])
    >>> combine(said, "mean_logit")
    tensor([[0.6667, 0.6667]])
    """
    parts = contributions(logits, check_rule(rule))
    if weights is not None:
        return as_logits((parts * weights[..., None]).sum(dim=0), rule)
    if rule == "mean_probability":  # in logarithms: nothing underflows, and gradients stay right
        return torch.logsumexp(torch.log_softmax(logits, dim=-1), dim=0) - math.log(len(logits))
    return as_logits(parts.sum(dim=0) if rule == "sum_logit" else parts.mean(dim=0), rule)


def combine_some(
    logits: Tensor, rule: str, present: Tensor, how: str, others: Tensor | None = None, weights: Tensor | None = None
) -> Tensor:
    """All coalitions at once: (stream, sample, class) and (coalition, stream) -> (coalition, sample, class).

    removed averages over those who are present (weights are scaled to sum to 1 again); zeroed lets logits of 0 stand
    in, resampled those of `others`, which are the streams' logits of other samples.
    """
    shape, there = logits.shape, present.to(logits.dtype)
    parts = contributions(logits, check_rule(rule))
    if weights is None:
        weights = logits.new_full(shape[:2], 1.0 if rule == "sum_logit" else 1.0 / shape[0])
    if how == "removed":
        if not bool(present.any(dim=1).all()):
            raise WaterjarError("removed: a coalition is empty, and nobody is left to answer")
        mixed = _product(there, parts * weights[..., None])
        mass = there @ weights
        scale = torch.ones_like(mass) if rule == "sum_logit" else mass
        return as_logits(mixed / scale[..., None], rule)
    if how == "resampled" and others is None:
        raise WaterjarError("resampled: give the streams' logits of other samples")
    if how == "zeroed" or others is None:
        even = 0.0 if rule in ("mean_logit", "sum_logit") else 1.0 / shape[-1]  # equal logits vote for all alike
        stand_in = torch.full_like(logits, even)
    else:
        stand_in = contributions(others, rule)
    weighted, instead = parts * weights[..., None], stand_in * weights[..., None]
    return as_logits(_product(there, weighted) + _product(1 - there, instead), rule)


def _product(there: Tensor, parts: Tensor) -> Tensor:
    """(coalition, stream) x (stream, sample, class) -> (coalition, sample, class); who is absent adds nothing."""
    if bool(torch.isfinite(parts).all()):
        return (there @ parts.flatten(1)).reshape(len(there), *parts.shape[1:])
    return torch.stack([parts[row > 0].sum(dim=0) for row in there])
