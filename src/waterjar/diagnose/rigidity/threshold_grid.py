"""AD over a grid of thresholds: how much of the answer is the choice of tau."""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NEVER_REACHED, Codes, Floats, Result
from waterjar.diagnose.rigidity.adaptation import FLAG, delay, flags, restricted
from waterjar.diagnose.rigidity.curves import Crossing
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


_FLAGS = Beside(("threshold",), "never reached the threshold", "", FLAG)


@metric(
    "ad_by_threshold",
    family="rigidity",
    long_name="adaptation delay over a grid of thresholds; per seed, the mean over it of the restricted delay",
    formula="AD(tau) for tau = 0.30 ... 0.80; mean of min(E_CL, L) - min(E_S, L) over the tau that a side reaches",
    units="epoch",
    citation="waterjar, after Gu & Shi, The Einstellung Rigidity Index",
    version=2,
    needs=("performance[t2_shortcut_normal]",),
    dims=("threshold",),
    summary="ad_over_thresholds",
    relative=True,
    beside={
        "ad_over_thresholds": Beside(units=""),
        "ad_over_thresholds_n_left_out": Beside(
            (), "thresholds that neither side reached within the budget, and that the mean leaves out", ""
        ),
        "ad_by_threshold_censored_learner": _FLAGS,
        "ad_by_threshold_censored_baseline": _FLAGS,
    },
    made_of=("adaptation_epoch",),
)
def _grid(pair: Pair) -> tuple[Result, dict[str, Result]]:
    own, other = pair.crossings(pair.settings.thresholds)
    mean, reason, left_out = over_thresholds(own, other, pair.budget)
    beside = {
        "ad_over_thresholds": Result.of(mean, reason),
        "ad_over_thresholds_n_left_out": Result.of(left_out, reason),
        "ad_by_threshold_censored_learner": flags(own),
        "ad_by_threshold_censored_baseline": flags(other),
    }
    return Result.of(*delay(own, other)), beside


def grid_over_seeds(values: Floats, reasons: Codes) -> dict[str, xr.Variable]:
    """`ad_by_threshold` (repeat, threshold) over seeds: its mean over those that got there, and how many did not."""
    reached = (reasons == 0).sum(axis=0)
    mean = np.full(reached.shape, np.nan)
    np.divide(np.where(reasons == 0, values, 0.0).sum(axis=0), reached, out=mean, where=reached > 0)
    why = np.where(reached > 0, 0, reasons.max(axis=0)).astype(np.uint8)
    words = {"long_name": "mean over the seeds that reached the threshold on both sides", "units": "epoch"}
    censored = (reasons == NEVER_REACHED).sum(axis=0).astype(np.float64)
    about = {"long_name": "seeds in which a side never reached the threshold"}
    return {
        **variable("ad_by_threshold_mean", ["threshold"], mean, why, words),
        "ad_by_threshold_n_censored": xr.Variable(["threshold"], censored, about),
    }
