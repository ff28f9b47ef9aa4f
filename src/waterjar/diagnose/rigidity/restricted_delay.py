"""AD within the budget: a difference of restricted means, which exists where AD itself is censored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import NEVER_REACHED, Result
from waterjar.diagnose.rigidity.adaptation import delay, restricted
from waterjar.diagnose.rigidity.curves import Crossing
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.stats.survival import restricted_mean_difference


def nobody_within(own: Crossing, other: Crossing, budget: float) -> NDArray[np.bool_]:
    """Where both sides are known not to have reached the threshold within the budget; shape of the crossings."""
    late = [(side.reason == NEVER_REACHED) | (side.epoch > budget) for side in (own, other)]
    return np.asarray(late[0] & late[1], np.bool_)


def restricted_delays(own: Crossing, other: Crossing, budget: float) -> Crossing:
    """min(E_CL, L) - min(E_S, L) per seed, (repeat,); `never_reached` throughout where nobody ever got there.

    In a seed in which both sides are censored the difference is 0: within the budget they spent the same time below
    the threshold. Where that holds for all seeds nothing was seen, and 0 would pretend that they were equally fast.
    """
    found = delay(restricted(own, budget), restricted(other, budget))
    known = found.reason == 0
    if known.any() and nobody_within(own, other, budget)[known].all():
        code = np.where(known, NEVER_REACHED, found.reason).astype(np.uint8)
        return Crossing(np.full(found.epoch.shape, np.nan), code)
    return found


@metric(
    "ad_restricted",
    family="rigidity",
    long_name="adaptation delay within the budget; its mean is the restricted-mean difference",
    formula="min(E_CL, L) - min(E_S, L), L the smaller of the two budgets",
    units="epoch",
    citation="Royston & Parmar 2013, Restricted mean survival time; Gu & Shi, The Einstellung Rigidity Index",
    needs=("performance[t2_shortcut_normal]",),
    symbol="AD_L",
    relative=True,
    matters=1,
    interval="auto",
    made_of=("adaptation_epoch",),
)
def _within_budget(pair: Pair) -> Result:
    return Result.of(*restricted_delays(*pair.at_threshold, pair.budget))


def restricted_interval(pair: Pair) -> tuple[float, float, str]:
    """Bounds of the mean of `ad_restricted`, t below ten pairs of seeds and BCa from there; and which of them."""
    own, other = pair.at_threshold
    known = restricted_delays(own, other, pair.budget).reason == 0
    if not known.any():
        return np.nan, np.nan, "no seed has both sides measured, or no side ever reached the threshold"
    interval = restricted_mean_difference(
        restricted(own, pair.budget).epoch[known],
        own.reason[known] == NEVER_REACHED,
        restricted(other, pair.budget).epoch[known],
        other.reason[known] == NEVER_REACHED,
        limit=pair.budget,
        confidence=pair.settings.confidence,
        rng=pair.settings.rng_seed,
    )
    return interval.low, interval.high, interval.reason or interval.note
