"""The floor: where masking leaves nothing of the accuracy, SFR_rel is -PD by arithmetic and says nothing of its own.

SFR_rel + PD + masked_gap = 0 by definition; so these stand beside it: how the masked accuracies differ, and which share
of what is above chance the mask takes.
"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import CHANCE_UNKNOWN, UNDEFINED, Result
from waterjar.diagnose.rigidity.curves import ROUNDING
from waterjar.diagnose.rigidity.guessing import shown_above
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result, minus

_SOURCE = "waterjar, after Gu & Shi, The Einstellung Rigidity Index"


def reliance_share(normal: Number, masked: Number, chance: float) -> Result:
    """(A_normal - A_masked) / (A_normal - chance): the share of accuracy above chance that hangs on the shortcut.

    1: masking takes it to chance; above 1 below chance; 0: it costs nothing. Where A_normal is not above chance there
    is nothing that could hang on it: `undefined`. A chance that is NaN is not known: `chance_unknown`.

    >>> round(float(reliance_share(0.75, 0.15, 0.05)), 3)
    0.857
    """
    own, hidden = as_result(normal, "normal"), as_result(masked, "masked")
    lost = minus(own, hidden)
    above = np.subtract(own.value, chance)
    some = np.asarray(above > ROUNDING)
    share = np.where(some, np.divide(lost.value, np.where(some, above, 1.0)), np.nan)
    why = np.uint8(CHANCE_UNKNOWN if np.isnan(chance) else UNDEFINED)
    return Result.of(share, np.where(np.asarray(lost.code) > 0, lost.code, why), note=lost.note)


def bound_by_floor(pair: Pair) -> bool:
    """Whether the masked accuracies of both sides are at or below chance: neither is clearly above (`shown_above`).

    Where that is so, nothing shows that SFR_rel says more than -PD.
    """
    other = pair.baseline
    if other is None:
        return False
    sides = ((pair.learner.guessing, pair.final("masked")), (other.guessing, pair.final("masked", of_baseline=True)))
    confidence = pair.settings.confidence
    return all(
        shown_above(masked.value, known.chance, known.sizes.get("masked"), confidence) is False
        for known, masked in sides
    )


@metric(
    "masked_gap",
    family="rigidity",
    long_name="accuracy with the shortcut masked, beyond that of the baseline",
    formula="A*_CL(masked) - A*_S(masked) = -(SFR_rel + PD)",
    direction="higher",
    range=(-1.0, 1.0),
    citation=_SOURCE,
    needs=("performance[t2_shortcut_masked]", "performance[t2_validation]"),
    relative=True,
    made_of=("masked_accuracy",),
)
def _masked_gap(pair: Pair) -> Result:
    return minus(
        as_result(pair.final("masked"), "masked"), as_result(pair.final("masked", of_baseline=True), "baseline")
    )


@metric(
    "reliance_share",
    family="rigidity",
    long_name="share of the accuracy above chance that masking the shortcut takes",
    formula="(A*(normal) - A*(masked)) / (A*(normal) - chance)",
    direction="lower",
    citation=_SOURCE,
    needs=("performance[t2_shortcut_normal]", "performance[t2_shortcut_masked]", "performance[t2_validation]"),
    made_of=("patched_accuracy", "masked_accuracy"),
)
def _reliance_share(pair: Pair) -> Result:
    return reliance_share(pair.final("normal"), pair.final("masked"), pair.learner.guessing.chance)
