"""How often does at least one stream know the answer?"""

from __future__ import annotations

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BESIDE = {"oracle_gap": Beside((), "oracle accuracy less that of the collective: what a better choice could gain")}


@metric(
    "oracle_accuracy",
    family="collective",
    long_name="oracle accuracy: share of samples on which at least one stream is right",
    formula="mean over samples of max over streams of right",
    direction="higher",
    range=(0, 1),
    citation="Kuncheva 2002, A theoretical study on six classifier fusion strategies",
    needs=("streams/logits", "probe_samples/label"),
    summary="oracle_accuracy_final",
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs) -> tuple[Result, dict[str, Result]]:
    if outputs.compared is not None:
        return outputs.compared, dict.fromkeys(_BESIDE, outputs.compared)
    right = outputs.test.right[:, outputs.alive].max(1)
    found = Result(float(right.mean()), n=len(right))
    if outputs.scored is not None:
        return found, dict.fromkeys(_BESIDE, outputs.scored)
    return found, {"oracle_gap": Result(float(found) - float(outputs.test.collective_right.mean()))}
