"""The floor: where masking leaves nothing of the accuracy, SFR_rel is -PD by arithmetic and says nothing of its own.

SFR_rel + PD + masked_gap = 0 by definition; so these stand beside it: how the masked accuracies differ, and which share
of what is above chance the mask takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import CHANCE_UNKNOWN, UNDEFINED, Result
from waterjar.diagnose.rigidity.curves import ROUNDING
from waterjar.diagnose.rigidity.guessing import Guessing, shown_above, shown_within
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result, minus

_SOURCE = "waterjar, after Gu & Shi, The Einstellung Rigidity Index"
_STEP, _MOST_IMAGES = 1.05, 1_000_000


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


@dataclass(frozen=True)
class Floor:
    """What is known of the masked accuracies of both sides."""

    bound: bool | None = False
    """Whether both are at chance, so that nothing shows that SFR_rel says more than -PD; None where it is not known."""
    images: int | None = None
    """Of the smaller of the two sets; None where it was not recorded."""
    needed: int | None = None
    """How large the sets would have to be to tell, if the accuracies hold; None where that is not known."""


def floor_of(pair: Pair) -> Floor:
    """Whether masking takes both sides to chance.

    A side is above it where that is shown (`shown_above`), and at it where the upper bound of its accuracy stays within
    the margin of chance (`shown_within`). A set of few images shows neither: then it is not known.
    """
    other = pair.baseline
    if other is None:
        return Floor()
    sides = ((pair.learner.guessing, pair.final("masked")), (other.guessing, pair.final("masked", of_baseline=True)))
    sizes = [known.sizes.get("masked") for known, _ in sides]
    found = _bound(sides, sizes, pair)
    known = [size for size in sizes if size]
    if found is not None or len(known) < len(sizes):
        return Floor(found, min(known, default=None))
    size = min(known)
    tried = (math.ceil(size * _STEP**k) for k in range(1, 1 + math.ceil(math.log(_MOST_IMAGES / size, _STEP))))
    enough = next((n for n in tried if _bound(sides, [max(n, own) for own in known], pair) is not None), None)
    return Floor(None, size, None if enough is None else _rounded_up(enough))


def _bound(sides: Sequence[tuple[Guessing, Result]], sizes: Sequence[int | None], pair: Pair) -> bool | None:
    """As `Floor.bound`, with sets of these sizes."""
    confidence, margin = pair.settings.confidence, pair.settings.margin
    known = [(masked.value, own.chance, size) for (own, masked), size in zip(sides, sizes, strict=True)]
    if any(shown_above(*one, confidence) is not False for one in known):
        return False
    return True if all(shown_within(*one, confidence, margin) for one in known) else None


def _rounded_up(n: int) -> int:
    """To two digits.

    >>> _rounded_up(1234), _rounded_up(90)
    (1300, 90)
    """
    unit: int = 10 ** max(0, len(str(n)) - 2)
    return -(-n // unit) * unit


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
