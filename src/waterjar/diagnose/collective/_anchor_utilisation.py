"""How much each stream uses each anchor."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.inputs import Affinities
from waterjar.diagnose.collective.utilisation import utilised
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BY_ANCHOR = "anchor_utilisation_by_anchor"


@metric(
    "anchor_utilisation",
    family="collective",
    long_name="anchor utilisation: mean affinity of each stream to each anchor",
    formula="mean over x of affinity_n,a(x)",
    citation="the seed document, Metrics and Evaluation 2.2",
    needs=("streams",),
    dims=("stream", "anchor"),
    summary="anchor_utilisation_final",
    beside={_BY_ANCHOR: Beside(("anchor",), "mean over streams of the utilisation of each anchor")},
)
def _measure(affinities: Affinities) -> tuple[Result, dict[str, Result]]:
    each, over_all = utilised(affinities)
    if isinstance(over_all, Result):
        over_all = np.full(each.value.shape[1], np.nan)
        return each, {_BY_ANCHOR: Result.of(over_all, each.reason.max(initial=0))}
    return each, {_BY_ANCHOR: Result.of(over_all)}
