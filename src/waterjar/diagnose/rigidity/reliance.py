"""SFR: how much accuracy hangs on the shortcut, by itself and against the baseline."""

from __future__ import annotations

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result, minus

_NEEDS = ("performance[t2_shortcut_normal]", "performance[t2_shortcut_masked]", "performance[t2_validation]")


def shortcut_reliance(normal: Number, masked: Number, baseline: Number = 0.0) -> Result:
    """Shortcut feature reliance, SFR = A*(normal) - A*(masked), minus the baseline's reliance where one is given.

    `normal` and `masked` are accuracies on the same images of shortcut classes, the shortcut visible or replaced.
    With `baseline` = Delta_S it is SFR_rel = Delta_CL - Delta_S. Gu & Shi, "The Einstellung Rigidity Index".

    >>> round(float(shortcut_reliance(0.75, 0.25)), 2), round(float(shortcut_reliance(0.75, 0.25, 0.4)), 2)
    (0.5, 0.1)
    """
    own = minus(as_result(normal, "normal"), as_result(masked, "masked"))
    return minus(own, as_result(baseline, "baseline", -1.0, 1.0))


@metric(
    "sfr",
    family="rigidity",
    long_name="shortcut feature reliance, absolute",
    formula="Delta_CL = A*_CL(normal) - A*_CL(masked)",
    direction="zero",
    range=(-1.0, 1.0),
    citation="Gu & Shi, The Einstellung Rigidity Index",
    needs=_NEEDS,
    symbol="SFR",
    made_of=("patched_accuracy", "masked_accuracy"),
)
def _absolute(pair: Pair) -> Result:
    return shortcut_reliance(pair.final("normal"), pair.final("masked"))


@metric(
    "sfr_rel",
    family="rigidity",
    long_name="shortcut feature reliance beyond that of the baseline",
    formula="Delta_CL - Delta_S",
    direction="lower",
    range=(-2.0, 2.0),
    citation="Gu & Shi, The Einstellung Rigidity Index",
    needs=_NEEDS,
    symbol="SFR_rel",
    matters=3,
    relative=True,
    made_of=("sfr",),
)
def _relative(pair: Pair) -> Result:
    theirs = shortcut_reliance(pair.final("normal", of_baseline=True), pair.final("masked", of_baseline=True))
    return shortcut_reliance(pair.final("normal"), pair.final("masked"), theirs)
