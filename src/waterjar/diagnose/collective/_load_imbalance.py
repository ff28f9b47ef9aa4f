"""Are all targets of routing used alike?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective._routing_entropy import loads
from waterjar.diagnose.collective.inputs import Routing
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, Result

_LOAD = "route_load"
_NO_TARGETS = Result.missing("not_recorded", "where routes go was not recorded (streams/route_index)")


def load_imbalance(load: ArrayLike) -> Result:
    """Coefficient of variation of the load (target,): standard deviation / mean, 0 where all have the same.

    It is sqrt(targets - 1) where one target takes all.

    >>> float(load_imbalance([0.5, 0.5])), float(load_imbalance([1.0, 0.0]))
    (0.0, 1.0)
    """
    values = np.asarray(load, np.float64)
    if np.isnan(values).any():
        return Result.missing("not_a_number")
    if not values.sum() > 0:
        return Result.missing("undefined", "no route goes anywhere")
    return Result(float(values.std() / values.mean()))


@metric(
    "load_imbalance",
    family="collective",
    long_name="load imbalance: coefficient of variation of the routing to each target, over all streams",
    formula="std over targets of load / mean load",
    direction="lower",
    range=(0, np.inf),
    citation="Shazeer et al. 2017, Outrageously large neural networks, sec. 4",
    needs=("streams/route_weight", "streams/route_index"),
    summary="load_imbalance_final",
    beside={_LOAD: Beside(("stream", "target"), "share of its routing that each stream sends to each target")},
)
def _measure(routing: Routing) -> tuple[Result, dict[str, Result]]:
    shape = (len(routing.names), routing.n_targets)
    load = None if routing.missing is not None else loads(routing)
    if load is None:
        gone = routing.missing or _NO_TARGETS
        return gone, {_LOAD: Result.of(np.full(shape, np.nan), gone.code)}
    there = ~np.isnan(load).any(1)
    found = load_imbalance(load[there].mean(0)) if there.any() else Result.missing("not_a_number")
    return found, {_LOAD: Result.of(load, NOT_A_NUMBER)}
