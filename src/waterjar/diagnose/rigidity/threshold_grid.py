"""AD over a grid of thresholds: how much of the answer is the choice of tau."""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import metric
from waterjar.diagnose.rigidity.adaptation import censored_flags, crossings, delay, restricted
from waterjar.diagnose.rigidity.curves import NEVER_REACHED
from waterjar.diagnose.rigidity.pair import Pair


@metric(
    "ad_by_threshold",
    family="rigidity",
    long_name="adaptation delay over a grid of thresholds; per seed, the mean over it of the restricted delay",
    formula="AD(tau) for tau = 0.30 ... 0.80; mean over tau of min(E_CL, L) - min(E_S, L)",
    units="epoch",
    citation="waterjar, after Gu & Shi, The Einstellung Rigidity Index",
    needs=("performance[t2_shortcut_normal]",),
    summary="ad_over_thresholds",
)
def _grid(pair: Pair) -> dict[str, xr.Variable]:
    levels = np.asarray(pair.rules.thresholds, np.float64)
    own = crossings(pair.learner, pair.learner, levels, pair.rules.window)
    other = crossings(pair.baseline, pair.learner, levels, pair.rules.window)
    found = delay(own, other)
    within = delay(restricted(own, pair.budget), restricted(other, pair.budget))
    overall = within.epoch.mean(axis=1)
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
        **variable("ad_over_thresholds", ["repeat"], overall, within.reason.max(axis=1)),
    }
