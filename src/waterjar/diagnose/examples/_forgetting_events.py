"""How often each example was forgotten."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.examples.inputs import History
from waterjar.diagnose.examples.kernels import count_forgetting
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import NEVER_REACHED, Result


@metric(
    "forgetting_events",
    family="examples",
    long_name="forgetting events of an example, of those that were ever learned",
    formula="number of times that it is right at one evaluation and wrong at its next one",
    direction="lower",
    range=(0, np.inf),
    citation="Toneva et al. 2019, An Empirical Study of Example Forgetting during Deep Neural Network Learning",
    needs=("examples/correct",),
    dims=("example",),
    summary="forgetting_events_mean",
    matters=1,
)
def _measure(history: History) -> Result:
    known = (history.reasons == 0) & history.ever_right
    why = np.where(history.reasons > 0, history.reasons, NEVER_REACHED)
    return Result.of(np.where(known, count_forgetting(history.answers), np.nan), why)
