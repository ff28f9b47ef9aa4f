"""Does routing depend on the input, and on its class?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective._routing_entropy import entropy
from waterjar.diagnose.collective.inputs import Routing
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Floats, Result

_BESIDE = {
    "route_class_information": Beside((), "mutual information of the target of routes with the class", "nat"),
    "route_class_information_shuffled": Beside((), "the same with shuffled labels: what few samples show alone", "nat"),
}
_SHUFFLES = 10
_NO_TARGETS = Result.missing("not_recorded", "where routes go was not recorded (streams/route_index)")


def input_information(routing: ArrayLike) -> float:
    """I(target; input) = H(mean routing) - mean H(routing), in nats; routing (sample, target), each row sums to 1.

    0 where every input goes the same way, log K at most. Low entropy alone cannot tell a specialised router, whose
    information is high, from one that has collapsed to one target, whose information is 0.

    >>> round(input_information([[1.0, 0.0], [0.0, 1.0]]), 4), input_information([[1.0, 0.0], [1.0, 0.0]])
    (0.6931, 0.0)
    """
    values = np.asarray(routing, np.float64)
    return float(entropy(values.mean(0)) - entropy(values).mean())


def class_information(routing: ArrayLike, labels: ArrayLike) -> float:
    """I(target; class) = H(mean routing) - mean over samples of H(mean routing of its class), in nats.

    >>> round(class_information([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 0, 1]), 4)
    0.6931
    """
    values, wanted = np.asarray(routing, np.float64), np.asarray(labels)
    _, members, counts = np.unique(wanted, return_inverse=True, return_counts=True)
    by_class = np.zeros((len(counts), values.shape[1]))
    np.add.at(by_class, members, values)
    return float(entropy(values.mean(0)) - (counts / len(wanted)) @ entropy(by_class / counts[:, None]))


@metric(
    "route_information",
    family="collective",
    long_name="mutual information of the target of routes with the input, mean over streams and slots",
    formula="I(T; X) = H(mean over x of w) - mean over x of H(w)",
    units="nat",
    range=(0, np.inf),
    citation="Cover & Thomas 2006, ch. 2; of mixtures of experts, Mustafa et al. 2022 (LIMoE)",
    needs=("streams/route_weight", "streams/route_index"),
    summary="route_information_final",
    beside=_BESIDE,
)
def _measure(routing: Routing, *, resampling_seed: int) -> tuple[Result, dict[str, Result]]:
    gone = routing.missing or (None if routing.targets is not None and routing.n_targets else _NO_TARGETS)
    if gone is not None:
        return gone, dict.fromkeys(_BESIDE, gone)
    own = routing.shares
    there = np.flatnonzero(routing.weighed)
    if not len(there):
        why = Result.missing("not_a_number", "weights that are NaN, negative, or all 0")
        return why, dict.fromkeys(_BESIDE, why)
    inputs, classes, shuffled = [], [], []
    rng = np.random.default_rng(np.random.SeedSequence(resampling_seed, spawn_key=(len(own), 4)))
    labels = routing.labels
    orders = [] if labels is None else [rng.permutation(labels) for _ in range(_SHUFFLES)]
    for stream in there.tolist():
        for slot in range(own.shape[2]):
            one = by_target(routing, own, stream, slot)
            inputs.append(input_information(one))
            if labels is not None:
                classes.append(class_information(one, labels))
                shuffled.append(float(np.mean([class_information(one, other) for other in orders])))
    absent = Result.missing("not_recorded", "the labels of the samples were not recorded (probe_samples/label)")
    beside = [Result(max(float(np.mean(part)), 0.0)) if part else absent for part in (classes, shuffled)]
    return Result(max(float(np.mean(inputs)), 0.0), n=len(own)), dict(zip(_BESIDE, beside, strict=True))


def by_target(routing: Routing, own: Floats, stream: int, slot: int) -> Floats:
    """(sample, target): share that one slot of one stream sends to each target; what goes nowhere is left out."""
    assert routing.targets is not None
    places, weights = routing.targets[:, stream, slot], own[:, stream, slot]
    found = np.zeros((len(own), routing.n_targets))
    rows = np.broadcast_to(np.arange(len(own))[:, None], places.shape)
    there = places >= 0
    np.add.at(found, (rows[there], places[there]), weights[there])
    total = found.sum(1, keepdims=True)
    return np.asarray(np.divide(found, total, out=np.zeros_like(found), where=total > 0), np.float64)
