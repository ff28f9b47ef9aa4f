"""How the outputs of several streams make one: rules that need no model."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.errors import WaterjarError, unknown_name

Floats = NDArray[np.float64]
Rule = Literal["mean_probability", "mean_logit", "vote"]
RULES: tuple[Rule, ...] = get_args(Rule)
MOST_APART = 1e-3
"""Probabilities that are further apart are not the same, however coarsely they are stored."""
_SHARES_APART = 1e-4
"""How far probabilities may be from a sum of 1; more only where they are stored more coarsely."""
_LEAST_APART = 1e-9
"""Apart by the arithmetic here."""


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


def are_probabilities(values: ArrayLike) -> bool:
    """Whether all rows (..., class) that are numbers are from 0 to 1 and sum to 1, as no logits do by chance.

    >>> are_probabilities([[0.9, 0.1], [0.5, 0.5]]), are_probabilities([[0.9, 0.1], [2.0, -1.0]])
    (True, False)
    """
    found = np.asarray(values)
    if found.ndim < 1 or found.shape[-1] < 2:  # of one class, nothing can be told
        return False
    rows = found.reshape(-1, found.shape[-1]).astype(np.float64)
    known = rows[~np.isnan(rows).any(-1)]
    room = max(_SHARES_APART, float(np.finfo(found.dtype).eps) if found.dtype.kind == "f" else 0.0)
    return bool(len(known)) and bool((known >= 0).all() and (abs(known.sum(-1) - 1) <= room).all())


def log_probabilities(values: ArrayLike) -> Floats:
    """Logits of probabilities: their logs, minus infinity where one is 0.

    >>> log_probabilities([1.0, 0.0])
    array([  0., -inf])
    """
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, np.float64))


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
    if rule == "mean_probability":
        return np.exp(log_softmax(values))
    votes = np.asarray(np.arange(values.shape[-1]) == values.argmax(-1)[..., None], np.float64)
    return np.where(_votes(values)[..., None], votes, np.nan)


def _votes(logits: NDArray[Any]) -> NDArray[np.bool_]:
    """(...): whether logits (..., class) have a largest one; that may be plus infinity, which is no probability."""
    return np.asarray(~np.isnan(logits).any(-1) & (logits.max(-1) > -np.inf))


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

    Probabilities must be the same to what the rounding of the stored logits can change, and never further apart than
    0.001; answers must be the same wherever rounding cannot turn them. Rows that rounding blurs more than that tell
    nothing of probabilities: they may be half of all at most.

    >>> streams = np.log([[[0.9, 0.1], [0.5, 0.5]]])
    >>> reproducing_rule(streams, combine(streams, "mean_logit"))
    'mean_logit'
    """
    return next((rule for rule in RULES if reproduces(logits, collective, rule)), None)


def reproduces(logits: Any, collective: Any, rule: Rule) -> bool | None:
    """Whether a rule makes these logits of the collective of its streams', see `reproducing_rule`.

    None where that cannot be told: no row has numbers throughout, or rounding blurs most of those that have.

    >>> streams = np.log([[[0.9, 0.1], [0.5, 0.5]]])
    >>> reproduces(streams, combine(streams, "mean_logit"), "mean_probability")
    False
    """
    streams, recorded = np.asarray(logits), np.asarray(collective)
    able = _votes(streams) if rule == "vote" else ~np.isnan(log_softmax(streams)).any(-1)
    known = ~np.isnan(log_softmax(recorded)).any(-1) & able.all(-1)
    streams, recorded = streams[known], recorded[known]
    return _reproduces(rule, streams, recorded, np.exp(log_softmax(recorded))) if known.any() else None


def _reproduces(rule: Rule, streams: NDArray[Any], recorded: NDArray[Any], wanted: Floats) -> bool | None:
    """Whether a rule makes probabilities (row, class) of logits (row, stream, class), as far as rounding can tell."""
    made = np.exp(log_softmax(combine(streams, rule)))
    blur = _LEAST_APART + _blur(wanted, _rounding(recorded)) + _made_blur(rule, streams, made)
    apart = np.abs(made - wanted)
    tells = np.asarray((blur <= MOST_APART).all(-1))
    if (apart > blur)[tells].any():
        return False
    best = wanted.argmax(-1)[:, None]
    lead = np.take_along_axis(wanted, best, -1) - wanted
    room = np.take_along_axis(blur, best, -1) + blur
    turned = np.take_along_axis(made, best, -1) < made
    if (turned & (lead > room)).any():
        return False
    return True if 2 * tells.sum() >= len(tells) else None


def _made_blur(rule: Rule, streams: NDArray[Any], made: Floats) -> Floats:
    """(row, class): how far rounding of the streams' logits (row, stream, class) moves what a rule makes of them."""
    rounding = _rounding(streams)
    if rule == "mean_probability":
        return np.asarray(_blur(np.exp(log_softmax(streams)), rounding).mean(-2))
    if rule == "mean_logit":
        return _blur(made, rounding.mean(-2))
    two = np.sort(streams.astype(np.float64), -1)[..., -2:]
    with np.errstate(invalid="ignore"):
        even = two[..., -1] - two[..., 0] <= 2 * np.take_along_axis(rounding, streams.argmax(-1)[..., None], -1)[..., 0]
    split = even.any(-1) & (streams.shape[-1] > 1)  # rounding may have moved a vote
    return np.where(split[:, None], 1.0, np.zeros_like(made))


def _rounding(logits: NDArray[Any]) -> Floats:
    """How far each stored logit may be from the number that was computed, in single precision at the best."""
    size = np.where(np.isfinite(logits), np.abs(logits.astype(np.float64)), 0.0)
    stored = float(np.finfo(logits.dtype).eps) / 2 if logits.dtype.kind == "f" else 0.0
    return stored * size + 8.0 * float(np.finfo(np.float32).eps) * (1.0 + size)


def _blur(probabilities: Floats, rounding: Floats) -> Floats:
    """(..., class): how far such errors of logits move probabilities, p_c |sum over k of p_k (e_c - e_k)| at most."""
    others = (probabilities * rounding).sum(-1, keepdims=True) - probabilities * rounding
    return np.asarray(probabilities * ((1.0 - probabilities) * rounding + others), np.float64)
