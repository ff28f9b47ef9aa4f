"""How spread out is routing?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import Routing, shares
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, Floats, Result

_BESIDE = {
    "routing_entropy_normalised": Beside((), "routing entropy over log K, which bands and alerts use"),
    "routing_entropy_of_mean": Beside((), "entropy of the mean routing to each target: low is collapse", "nat"),
    "routing_entropy_of_mean_normalised": Beside((), "the same over the log of the number of targets"),
    "routing_entropy_by_stream": Beside(("stream",), "routing entropy of each stream", "nat"),
}


def entropy(weights: ArrayLike) -> Floats:
    """- sum w log w over the last axis, in nats, of weights that sum to 1; 0 log 0 is 0.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([0.6931, 0.    ])
    """
    values = np.asarray(weights, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(
            values > 0, values * np.log(np.where(values > 0, values, 1.0)), np.where(values == 0, 0.0, np.nan)
        )
    return np.asarray(0.0 - terms.sum(-1))


def over_log(value: float, choices: int) -> float:
    """An entropy over the log of the number of choices, of which it cannot pass 1: rounding may take it there.

    >>> over_log(float(entropy(np.full(5, 0.2))), 5)
    1.0
    """
    return min(value / float(np.log(choices)), 1.0)


def routing_entropy(weights: ArrayLike) -> Result:
    """Mean over samples, streams and slots of the entropy over routes; weights (sample, ..., route), scaled to sum 1.

    Between 0 and log K. With K = 4 it cannot pass 1.39: compare the normalised one between networks.

    >>> round(float(routing_entropy([[[0.5, 0.5]], [[1.0, 0.0]]])), 4)
    0.3466
    """
    found = entropy(shares(np.asarray(weights, np.float64)))
    if np.isnan(found).any():
        return Result.missing("not_a_number", "weights that are NaN, negative, or all 0", n=len(found))
    return Result(float(found.mean()), n=len(found))


@metric(
    "routing_entropy",
    family="collective",
    long_name="routing entropy: mean over samples, streams and slots of the entropy of route weights",
    formula="- sum over k of w_k log w_k",
    units="nat",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 2.1; Shannon 1948",
    needs=("streams/route_weight",),
    summary="routing_entropy_final",
    version=2,
    matters=5,
    beside=_BESIDE,
)
def _measure(routing: Routing) -> tuple[Result, dict[str, Result]]:
    if routing.missing is not None:
        gone = Result.of(np.full(len(routing.names), np.nan), routing.missing.code)
        return routing.missing, {**dict.fromkeys(_BESIDE, routing.missing), "routing_entropy_by_stream": gone}
    each = entropy(routing.shares).mean((0, 2))
    by_stream = Result.of(each, NOT_A_NUMBER, n=len(routing.weights))
    there = ~np.isnan(each)
    if not there.any():
        why = Result.missing("not_a_number", "weights that are NaN, negative, or all 0")
        return why, {**dict.fromkeys(_BESIDE, why), "routing_entropy_by_stream": by_stream}
    found = float(each[there].mean())
    of_mean, normalised_mean = _of_mean(routing)
    beside = (_over_log(found, routing.weights.shape[-1]), of_mean, normalised_mean, by_stream)
    return Result(found, n=len(routing.weights)), dict(zip(_BESIDE, beside, strict=True))


def normalised(routing: Routing) -> Result:
    """The entropy over log K, of streams that are numbers."""
    if routing.missing is not None:
        return routing.missing
    each = entropy(routing.shares).mean((0, 2))
    there = ~np.isnan(each)
    return (
        _over_log(float(each[there].mean()), routing.weights.shape[-1])
        if there.any()
        else Result.missing("not_a_number")
    )


def _over_log(value: float, choices: int) -> Result:
    if choices < 2:
        return Result.missing("undefined", f"{choices} route: there is nothing to choose")
    return Result(over_log(value, choices))


def loads(routing: Routing) -> Floats | None:
    """(stream, target): mean share of its routing that each stream sends to each target; None where that is unknown.

    NaN of streams whose weights are not numbers.
    """
    if routing.targets is None or not routing.n_targets:
        return None
    samples, streams, slots, _ = routing.weights.shape
    own = routing.shares
    found = np.zeros((streams, routing.n_targets))
    for stream in range(streams):
        there = routing.targets[:, stream] >= 0
        sums = np.bincount(
            routing.targets[:, stream][there], weights=own[:, stream][there], minlength=routing.n_targets
        )
        found[stream] = sums / (samples * slots)
    gone = np.isnan(own).any((0, 2, 3))
    found[gone] = np.nan
    return found


def _of_mean(routing: Routing) -> tuple[Result, Result]:
    load = loads(routing)
    if load is None:
        why = Result.missing("not_recorded", "where routes go was not recorded (streams/route_index)")
        return why, why
    there = ~np.isnan(load).any(1)
    if not there.any():
        return Result.missing("not_a_number"), Result.missing("not_a_number")
    mean = load[there].mean(0)
    if not mean.sum() > 0:
        why = Result.missing("undefined", "no route goes anywhere")
        return why, why
    found = float(entropy(mean / mean.sum()))
    return Result(found), _over_log(found, routing.n_targets)
