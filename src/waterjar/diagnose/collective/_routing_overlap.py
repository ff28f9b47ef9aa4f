"""Do streams route alike?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.collective.inputs import Routing
from waterjar.diagnose.collective.pairs import among, mean_of_pairs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Floats, Result

_MATRIX = "routing_overlap_matrix"
_NO_TARGETS = Result.missing("not_recorded", "where routes go was not recorded (streams/route_index)")


def routing_overlap(targets: ArrayLike) -> Floats:
    """(stream, stream): mean over samples and slots of the Jaccard index of two streams' sets of targets.

    Targets are (sample, stream, slot, route), -1 for none; two empty sets are alike.

    >>> routing_overlap([[[[0, 1]], [[1, 2]]]])
    array([[1.        , 0.33333333],
           [0.33333333, 1.        ]])
    """
    places = np.asarray(targets)
    streams = places.shape[1]
    found = np.ones((streams, streams))
    count = int(places.max(initial=-1)) + 1
    sets = [_as_sets(places[:, stream], count) for stream in range(streams)]
    for one in range(streams):
        for other in range(one):
            both = (sets[one] & sets[other]).sum(-1)
            either = (sets[one] | sets[other]).sum(-1)
            index = np.divide(both, either, out=np.ones(both.shape), where=either > 0)
            found[one, other] = found[other, one] = index.mean()
    return found


def _as_sets(places: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """(sample, slot, target): whether a target is among the routes."""
    found = np.zeros((*places.shape[:-1], count + 1), np.bool_)
    np.put_along_axis(found, np.where(places < 0, count, places), True, -1)
    return found[..., :count]


@metric(
    "routing_overlap",
    family="collective",
    long_name="routing overlap: Jaccard index of two streams' top-K targets, mean over samples, slots and pairs",
    formula="mean over i < j of |T_i and T_j| / |T_i or T_j|",
    range=(0, 1),
    citation="the seed document, Metrics and Evaluation 3.3; Jaccard 1901",
    needs=("streams/route_index",),
    summary="routing_overlap_final",
    version=2,
    beside={_MATRIX: Beside(("stream", "other_stream"), "Jaccard index of two streams' top-K targets")},
)
def _measure(routing: Routing) -> tuple[Result, dict[str, Result]]:
    gone = routing.missing or (_NO_TARGETS if routing.targets is None else None)
    if gone is not None:
        return gone, {_MATRIX: among(gone, routing.names)}
    assert routing.targets is not None
    if routing.targets.shape[-1] == routing.n_targets > 0 and (routing.targets >= 0).all():
        note = "every slot routes to all targets: the sets are the same whatever the weights"
        why = Result.missing("undefined", note)
        return why, {_MATRIX: among(why, routing.names)}
    matrix = routing_overlap(routing.targets[:, routing.alive])
    return mean_of_pairs(matrix), {_MATRIX: among(matrix, routing.names, routing.alive)}
