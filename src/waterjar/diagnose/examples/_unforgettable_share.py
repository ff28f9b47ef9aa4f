"""The share of examples that were learned and never forgotten."""

from __future__ import annotations

from waterjar.diagnose.examples.inputs import History
from waterjar.diagnose.examples.kernels import count_forgetting
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


@metric(
    "unforgettable_share",
    family="examples",
    long_name="share of examples that were learned and never forgotten",
    formula="examples that were right at some evaluation and at each one after it / all examples",
    direction="higher",
    range=(0, 1),
    citation="Toneva et al. 2019, An Empirical Study of Example Forgetting during Deep Neural Network Learning",
    needs=("examples/correct",),
    beside={"unforgettable_share_by_set": Beside(("eval_set",), "the same of each evaluation set")},
    made_of=("forgetting_events",),
)
def _measure(history: History) -> tuple[Result, dict[str, Result]]:
    whole, by_set = history.share(history.ever_right & (count_forgetting(history.answers) == 0))
    return whole, {"unforgettable_share_by_set": by_set}
