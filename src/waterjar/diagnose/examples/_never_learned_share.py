"""The share of examples that were never right."""

from __future__ import annotations

from waterjar.diagnose.examples.inputs import History
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


@metric(
    "never_learned_share",
    family="examples",
    long_name="share of examples that were never right",
    formula="examples that were wrong at every evaluation that counts / all examples",
    direction="lower",
    range=(0, 1),
    citation="Toneva et al. 2019, An Empirical Study of Example Forgetting during Deep Neural Network Learning",
    needs=("examples/correct",),
    beside={"never_learned_share_by_set": Beside(("eval_set",), "the same of each evaluation set")},
    matters=2,
)
def _measure(history: History) -> tuple[Result, dict[str, Result]]:
    whole, by_set = history.share(~history.ever_right)
    return whole, {"never_learned_share_by_set": by_set}
