"""Are all anchors used alike?"""

from __future__ import annotations

from waterjar.diagnose.collective.inputs import Affinities
from waterjar.diagnose.collective.utilisation import anchor_entropy, utilised
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


@metric(
    "anchor_entropy",
    family="collective",
    long_name="entropy of the normalised anchor utilisation, over the log of the number of anchors",
    formula="- sum over a of u_a log u_a / log A, u = mean utilisation / its sum",
    range=(0, 1),
    citation="the seed document, Metrics and Evaluation 2.2, with normalised utilisation",
    needs=("streams",),
    summary="anchor_entropy_final",
    version=2,
    made_of=("anchor_utilisation",),
)
def _measure(affinities: Affinities) -> Result:
    found = utilised(affinities)[1]
    return found if isinstance(found, Result) else anchor_entropy(found)
