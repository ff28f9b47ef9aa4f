"""The epoch at which each example was learned."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.examples import kernels
from waterjar.diagnose.examples.inputs import History
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_MEDIAN, _BY_SET = "first_learned_median", "first_learned_by_set"


@metric(
    "first_learned",
    family="examples",
    long_name="epochs from the beginning of its task's training until an example was learned",
    formula="first evaluation at which it is right; with learned=for_good from which on it is never wrong",
    units="epoch",
    direction="lower",
    range=(0, np.inf),
    citation="Toneva et al. 2019, An Empirical Study of Example Forgetting during Deep Neural Network Learning",
    needs=("examples/correct",),
    dims=("example",),
    summary=_MEDIAN,
    beside={
        _MEDIAN: Beside((), "epoch by which half of the examples were learned", "epoch"),
        _BY_SET: Beside(("eval_set",), "the same of each evaluation set", "epoch"),
    },
    matters=3,
)
def _measure(history: History, *, learned: str) -> tuple[Result, dict[str, Result]]:
    found = kernels.first_learned(history.answers, history.epochs, learned=learned)
    codes = np.where(history.reasons > 0, history.reasons, found.reason).astype(np.uint8)
    values = np.where(codes > 0, np.nan, found.value)
    median, by_set = history.over(values, codes, "median"), history.by_set(values, codes, "median")
    return Result.of(values, codes), {_MEDIAN: median, _BY_SET: by_set}
