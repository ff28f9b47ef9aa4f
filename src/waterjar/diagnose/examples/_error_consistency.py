"""Do a learner and its baseline err on the same examples?"""

from __future__ import annotations

from waterjar.diagnose.examples.agreement import error_consistency
from waterjar.diagnose.examples.inputs import AnswerPair
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_BESIDE = {
    "error_consistency_observed": Beside((), "share of examples on which both are right or both are wrong"),
    "error_consistency_expected": Beside((), "the same of independent errors, by the two accuracies alone"),
    "error_consistency_lowest": Beside((), "lowest error consistency that the two accuracies allow"),
    "error_consistency_highest": Beside((), "highest error consistency that the two accuracies allow"),
}
_ITSELF = Result.missing("undefined", "it is the baseline itself")


@metric(
    "error_consistency",
    family="examples",
    long_name="error consistency with the baseline, seed by seed",
    formula="(c_obs - c_exp) / (1 - c_exp), c_exp = p q + (1 - p)(1 - q)",
    range=(-1, 1),
    citation="Geirhos, Meding & Wichmann 2020, Beyond Accuracy: Error Consistency",
    needs=("examples/correct",),
    beside=_BESIDE,
)
def _measure(pair: AnswerPair) -> tuple[Result, dict[str, Result]]:
    gone = _ITSELF if pair.is_same else pair.missing
    if gone is not None:
        return gone, dict.fromkeys(_BESIDE, gone)
    found = error_consistency(pair.learner, pair.baseline)
    beside = (Result(found.observed), Result(found.expected), found.lowest, found.highest)
    return found.kappa, dict(zip(_BESIDE, beside, strict=True))
