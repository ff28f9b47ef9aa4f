"""AD over a grid of thresholds: how much of the answer is the choice of tau."""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import metric
from waterjar.diagnose.rigidity.adaptation import censored_flags, crossings, delay, restricted
from waterjar.diagnose.rigidity.curves import NEVER_REACHED, Codes, Crossing, Floats
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.restricted_delay import nobody_within


def over_thresholds(own: Crossing, other: Crossing, budget: float) -> tuple[Floats, Codes, Floats]:
    """Mean over thresholds of min(E_CL, L) - min(E_S, L): (value, reason, thresholds left out), (repeat,) each.

    A threshold that neither side of a seed reaches within the budget says nothing of who is faster: it is left out
    of that seed's mean, and counted; 0 in its place would pull the mean towards "no delay". Where none is left the
    seed is `never_reached`. A threshold at which a side is unknown leaves the whole mean unknown, for its reason.
    """
    within = delay(restricted(own, budget), restricted(other, budget))
    out = nobody_within(own, other, budget)
    unknown = within.reason.max(axis=1)
    left = (~out).sum(axis=1)
    mean = np.full(left.shape, np.nan)
    total = np.where(out, 0.0, within.epoch).sum(axis=1)
    np.divide(total, left, out=mean, where=(left > 0) & (unknown == 0))
    reason = np.where(unknown > 0, unknown, np.where(left > 0, 0, NEVER_REACHED)).astype(np.uint8)
    return mean, reason, np.where(unknown > 0, np.nan, out.sum(axis=1))


@metric(
    "ad_by_threshold",
    family="rigidity",
    long_name="adaptation delay over a grid of thresholds; per seed, the mean over it of the restricted delay",
    formula="AD(tau) for tau = 0.30 ... 0.80; mean of min(E_CL, L) - min(E_S, L) over the tau that a side reaches",
    units="epoch",
    citation="waterjar, after Gu & Shi, The Einstellung Rigidity Index",
    version=2,
    needs=("performance[t2_shortcut_normal]",),
    summary="ad_over_thresholds",
    relative=True,
)
def _grid(pair: Pair) -> dict[str, xr.Variable]:
    levels = np.asarray(pair.rules.thresholds, np.float64)
    own = crossings(pair.learner, pair.learner, levels, pair.rules.window)
    other = crossings(pair.baseline, pair.learner, levels, pair.rules.window)
    found = delay(own, other)
    overall, overall_reason, left_out = over_thresholds(own, other, pair.budget)
    dims = ["repeat", "threshold"]
    reached = (found.reason == 0).sum(axis=0)
    total = np.where(found.reason == 0, found.epoch, 0.0).sum(axis=0)
    mean = np.full(levels.size, np.nan)
    np.divide(total, reached, out=mean, where=reached > 0)
    why = np.where(reached > 0, 0, found.reason.max(axis=0)).astype(np.uint8)
    censored = (found.reason == NEVER_REACHED).sum(axis=0).astype(np.float64)
    return {
        "threshold": xr.Variable(["threshold"], levels, {"long_name": "accuracy to reach", "units": "1"}),
        **variable("ad_by_threshold", dims, found.epoch, found.reason),
        **censored_flags("ad_by_threshold_censored_learner", own, dims),
        **censored_flags("ad_by_threshold_censored_baseline", other, dims),
        **variable(
            "ad_by_threshold_mean",
            ["threshold"],
            mean,
            why,
            {"long_name": "mean over the seeds that reached the threshold on both sides", "units": "epoch"},
        ),
        "ad_by_threshold_n_censored": xr.Variable(
            ["threshold"], censored, {"long_name": "seeds in which a side never reached the threshold"}
        ),
        **variable("ad_over_thresholds", ["repeat"], overall, overall_reason),
        **variable(
            "ad_over_thresholds_n_left_out",
            ["repeat"],
            left_out,
            np.where(np.isnan(left_out), overall_reason, 0).astype(np.uint8),
            {"long_name": "thresholds that neither side reached within the budget, and that the mean leaves out"},
        ),
    }
