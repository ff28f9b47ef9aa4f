"""AD within the budget: a difference of restricted means, which exists where AD itself is censored."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import UNDEFINED, variable
from waterjar.diagnose.registry import metric
from waterjar.diagnose.rigidity.adaptation import both_crossings, delay, restricted
from waterjar.diagnose.rigidity.curves import NEVER_REACHED, Crossing
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
)
def _within_budget(pair: Pair) -> dict[str, xr.Variable]:
    own, other = both_crossings(pair)
    found = restricted_delays(own, other, pair.budget)
    known = found.reason == 0
    low = high = np.nan
    note = "no seed has both sides measured, or no side ever reached the threshold"
    if known.any():
        interval = restricted_mean_difference(
            restricted(own, pair.budget).epoch[known],
            own.reason[known] == NEVER_REACHED,
            restricted(other, pair.budget).epoch[known],
            other.reason[known] == NEVER_REACHED,
            limit=pair.budget,
            confidence=pair.rules.confidence,
            rng=pair.rules.rng_seed,
        )
        low, high, note = interval.low, interval.high, interval.reason or interval.note
    code = np.array(UNDEFINED if np.isnan(low) else 0, np.uint8)
    words = {"long_name": "paired bootstrap over seeds of the mean of ad_restricted", "units": "epoch"}
    return {
        **variable("ad_restricted", ["repeat"], found.epoch, found.reason),
        **variable("ad_restricted_bootstrap_low", [], np.array(low), code, words),
        **variable("ad_restricted_bootstrap_high", [], np.array(high), code, words),
        "ad_restricted_bootstrap_note": xr.Variable([], np.array(note, object), {"long_name": "what it is worth"}),
    }
