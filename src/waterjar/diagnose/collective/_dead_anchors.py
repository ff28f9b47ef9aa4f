"""How many anchors does no stream use?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.inputs import Affinities
from waterjar.diagnose.collective.utilisation import dead_anchors, utilised
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


@metric(
    "dead_anchors",
    family="collective",
    long_name="dead anchors: used less than 1 % of the mean, over all streams",
    formula="number of anchors with u_a < 0.01 mean u",
    units="anchor",
    direction="lower",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 2.2",
    needs=("streams",),
    summary="dead_anchors_final",
    made_of=("anchor_utilisation",),
)
def _measure(affinities: Affinities) -> Result:
    found = utilised(affinities)[1]
    return found if isinstance(found, Result) else dead_anchors(found)
