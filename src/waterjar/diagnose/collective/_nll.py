"""Negative log-likelihood of the collective, as it is."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.answers import label_log_likelihood
from waterjar.diagnose.collective.calibration import negative_log_likelihood
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, Result

_BESIDE = {"nll_individual": Beside(("stream",), "negative log-likelihood of each stream", "nat")}


@metric(
    "nll",
    family="collective",
    long_name="negative log-likelihood of the collective, as it is",
    formula="- mean over samples of log p(label)",
    units="nat",
    direction="lower",
    range=(0, np.inf),
    citation="Ashukha et al. 2020, Pitfalls of in-domain uncertainty estimation",
    needs=("streams/collective_logits", "probe_samples/label"),
    version=2,
    summary="nll_final",
    symbol="NLL",
    beside=_BESIDE,
)
def _measure(outputs: StreamOutputs) -> tuple[Result, dict[str, Result]]:
    nothing = np.full(len(outputs.names), np.nan)
    gone = outputs.compared
    each = Result.of(nothing, 0 if gone is None else gone.code)
    if gone is None:
        assert outputs.test.logits is not None and outputs.test.labels is not None
        each = Result.of(0.0 - label_log_likelihood(outputs.test.logits, outputs.test.labels).mean(0), NOT_A_NUMBER)
    if outputs.scored is not None:
        return outputs.scored, {"nll_individual": each}
    assert outputs.test.collective is not None and outputs.test.labels is not None
    found = Result.of(negative_log_likelihood(outputs.test.collective, outputs.test.labels), NOT_A_NUMBER)
    return found, {"nll_individual": each}
