"""How the outputs of several streams make one: rules that need no model."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.errors import WaterjarError, unknown_name

Floats = NDArray[np.float64]
Rule = Literal["mean_probability", "mean_logit", "vote"]
RULES: tuple[Rule, ...] = get_args(Rule)


def log_softmax(logits: ArrayLike) -> Floats:
    """Logs of probabilities along the last axis; a logit of minus infinity has probability 0.

    Rows with NaN, with plus infinity or with nothing but minus infinity are NaN.

    >>> np.exp(log_softmax([[0.0, 0.0], [0.0, -np.inf]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    values = np.asarray(logits, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = values - values.max(-1, keepdims=True)
        found: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return found


def combine(logits: ArrayLike, rule: str, weights: ArrayLike | None = None) -> Floats:
    """Logits of streams (..., stream, class) -> logits of the collective (..., class), by a rule.

    `mean_probability`: log of the mean of the softmax probabilities. `mean_logit`: mean of the logits. `vote`: log of
    the share of streams whose largest logit it is, minus infinity where none votes for it. `weights` (stream,) count
    the streams, 1 each by default; one of 0 is not there at all. A stream with a NaN that counts makes the row NaN.

    >>> np.exp(combine([[[0.0, 0.0], [np.log(3.0), 0.0]]], "mean_probability")).round(3)
    array([[0.625, 0.375]])
    >>> np.exp(combine([[3.0, 0.0], [1.0, 0.0], [0.0, 9.0]], "vote")).round(3)
    array([0.667, 0.333])
    """
    if rule not in RULES:
        raise unknown_name("rule", rule, RULES)
    values = np.asarray(logits, np.float64)
    if values.ndim < 2:
        raise WaterjarError(f"logits have shape {values.shape}: expected (..., stream, class)")
    counted = np.ones(values.shape[-2]) if weights is None else np.asarray(weights, np.float64)
    there = counted > 0
    if counted.shape != values.shape[-2:-1] or not there.any():
        raise WaterjarError(f"weights have shape {counted.shape}: expected one a stream, one of them above 0")
    own, share = values[..., there, :], counted[there] / counted[there].sum()
    parts = _parts(own, rule)
    with np.errstate(divide="ignore", invalid="ignore"):
        mixed = np.einsum("...sc,s->...c", parts, share) if rule != "mean_logit" else (parts * share[:, None]).sum(-2)
        return np.asarray(mixed if rule == "mean_logit" else np.log(mixed), np.float64)


def _parts(values: Floats, rule: str) -> Floats:
    """What is averaged: (..., stream, class)."""
    if rule == "mean_logit":
        return values
    probabilities = np.exp(log_softmax(values))
    if rule == "mean_probability":
        return probabilities
    votes = np.asarray(np.arange(values.shape[-1]) == values.argmax(-1)[..., None], np.float64)
    return np.where(np.isnan(probabilities).any(-1, keepdims=True), np.nan, votes)


def averaged_parts(logits: ArrayLike, rule: str) -> Floats:
    """What a rule averages over streams, (..., stream, class): the mean of any of them is their collective's share.

    >>> averaged_parts([[0.0, 2.0]], "vote")
    array([[0., 1.]])
    """
    if rule not in RULES:
        raise unknown_name("rule", rule, RULES)
    return _parts(np.asarray(logits, np.float64), rule)


def reproducing_rule(logits: Any, collective: Any) -> Rule | None:
    """The rule that makes these logits of the collective (..., class) of those of its streams; None if none does.

    Compared are log-probabilities, to a few of the last digits that are stored; of a vote the answers and shares.

    >>> streams = np.log([[[0.9, 0.1], [0.5, 0.5]]])
    >>> reproducing_rule(streams, combine(streams, "mean_logit"))
    'mean_logit'
    """
    streams, recorded = np.asarray(logits), np.asarray(collective)
    narrow = max(_epsilon(streams), _epsilon(recorded))
    wanted = log_softmax(recorded)
    known = ~np.isnan(wanted).any(-1) & ~np.isnan(streams).any((-1, -2))
    if not known.any():
        return None
    scale = 1.0 + float(np.abs(streams[known][np.isfinite(streams[known])]).max(initial=0.0))
    for rule in RULES:
        made = log_softmax(combine(streams[known], rule))
        if np.allclose(np.exp(made), np.exp(wanted[known]), rtol=1e-4, atol=8.0 * narrow * scale):
            return rule
    return None


def _epsilon(array: NDArray[Any]) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
