"""The area under the margin of each example."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.examples.inputs import History
from waterjar.diagnose.examples.kernels import area_under_margin
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import NOT_RECORDED, UNDEFINED, Result


@metric(
    "area_under_margin",
    family="examples",
    long_name="area under the margin: mean margin of an example while its own task is trained",
    formula="mean over evaluations of z_label - max over others of z_k",
    units="logit",
    direction="higher",
    citation="Pleiss et al. 2020, Identifying Mislabeled Data using the Area Under the Margin Ranking",
    needs=("examples/margin",),
    dims=("example",),
    summary="area_under_margin_mean",
    symbol="AUM",
    matters=4,
)
def _measure(history: History, *, aum_over: str) -> Result:
    if history.margin is None:
        codes = np.where(history.reasons > 0, history.reasons, NOT_RECORDED)
        return Result.of(np.full(codes.shape, np.nan), codes)
    over = history.in_training if aum_over == "task" else history.counts
    found = area_under_margin(np.where(over, history.margin, np.nan))
    never = np.where(over.any(0), found.reason, UNDEFINED)  # its own task was never trained
    codes = np.where(history.reasons > 0, history.reasons, never)
    return Result.of(np.where(codes > 0, np.nan, found.value), codes)
