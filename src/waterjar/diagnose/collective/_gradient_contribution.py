"""How strongly does the loss pull at each stream?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.inputs import Coalitions
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import EMPTY_SET, NOT_A_NUMBER, NOT_RECORDED, Result


@metric(
    "gradient_contribution",
    family="collective",
    long_name="gradient contribution: mean norm of the gradient of the loss by each stream's pooled output",
    formula="mean over samples of |d loss / d pooled output of n|",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 2.4",
    needs=("streams/gradient_norm",),
    dims=("stream",),
    summary="gradient_contribution_final",
)
def _measure(coalitions: Coalitions) -> Result:
    norms = coalitions.gradient_norm
    if norms is None or not len(norms):
        return Result.of(np.full(len(coalitions.names), np.nan), NOT_RECORDED if norms is None else EMPTY_SET)
    return Result.of(norms.astype(np.float64).mean(0), NOT_A_NUMBER, n=len(norms))
