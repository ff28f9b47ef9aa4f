"""PD: how far a learner ends below a network that only ever saw the last task."""

from __future__ import annotations

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result, minus


def performance_deficit(final: Number, baseline_final: Number) -> Result:
    """Performance deficit, PD = A*_S - A*_CL: positive where the learner is worse than its baseline.

    Both are accuracies on the shortcut classes with the shortcut visible, at the checkpoint that the same rule
    picks for either. Gu & Shi, "Diagnosing Shortcut-Induced Rigidity in Continual Learning: The Einstellung
    Rigidity Index". Nothing is cut off at 0: a negative PD is what shortcut-induced rigidity looks like.

    >>> round(float(performance_deficit(0.729, 0.586)), 3)
    -0.143
    """
    return minus(as_result(baseline_final, "baseline_final"), as_result(final, "final"))


@metric(
    "pd",
    family="rigidity",
    long_name="performance deficit on the shortcut classes",
    formula="A*_S(normal) - A*_CL(normal), at the checkpoint with the best T2 validation accuracy",
    range=(-1.0, 1.0),
    citation="Gu & Shi, The Einstellung Rigidity Index",
    needs=("performance[t2_shortcut_normal]", "performance[t2_validation]"),
    symbol="PD",
    matters=2,
    relative=True,
    made_of=("patched_accuracy",),
)
def _deficit(pair: Pair) -> Result:
    return performance_deficit(pair.final("normal"), pair.final("normal", of_baseline=True))
