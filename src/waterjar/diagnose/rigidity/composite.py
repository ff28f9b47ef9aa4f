"""One number for the index, only on request: signed, its weights beside it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.adaptation import both_crossings, delay
from waterjar.diagnose.rigidity.deficit import performance_deficit
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_number, as_result, per_seed
from waterjar.diagnose.rigidity.reliance import shortcut_reliance
from waterjar.diagnose.rigidity.settings import check_weights
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

WEIGHTS = (0.4, 0.4, 0.2)


def rigidity_composite(
    ad: Number, pd: Number, sfr_rel: Number, *, budget: float, weights: tuple[float, float, float] = WEIGHTS
) -> Result:
    """w_1 AD / budget + w_2 PD + w_3 SFR_rel, signed.

    Nothing is made absolute or cut off at 0: |AD| or max(0, PD) would hide the very pattern the index is for, a
    learner that is quick and accurate because it took the shortcut. Equal scores can come from opposite patterns.

    >>> round(float(rigidity_composite(-5, -0.1, 0.2, budget=10)), 3)
    -0.2
    """
    right = f"budget={budget!r}: the number of epochs, above 0,"
    epochs = as_number(budget, right)
    if not 0 < epochs < np.inf:
        raise WaterjarError(f"{right} would be right")
    factors = check_weights(weights)
    terms = [
        as_result(ad, "ad", -np.inf, np.inf),
        as_result(pd, "pd", -1.0, 1.0),
        as_result(sfr_rel, "sfr_rel", -2.0, 2.0),
    ]
    for term in terms:
        if term.reason != "present":
            return Result.missing(term.reason, term.note, censored=term.censored)
    scaled = (terms[0].value / epochs, terms[1].value, terms[2].value)
    return Result(float(sum(weight * value for weight, value in zip(factors, scaled, strict=True))))


@metric(
    "eri_composite",
    family="rigidity",
    long_name="weighted sum of AD / budget, PD and SFR_rel; only with composite=True",
    formula="0.4 AD / budget + 0.4 PD + 0.2 SFR_rel, signed",
    citation="Gu & Shi, The Einstellung Rigidity Index; weights of the waterjar specification",
    needs=("performance[t2_shortcut_normal]", "performance[t2_shortcut_masked]", "performance[t2_validation]"),
)
def _composite(pair: Pair) -> dict[str, xr.Variable]:
    weights = pair.rules.weights
    if weights is None:
        return {}
    found = delay(*both_crossings(pair))
    results = []
    normal, masked = pair.final("normal"), pair.final("masked")
    their_normal, their_masked = pair.baseline_final("normal"), pair.baseline_final("masked")
    for i in range(pair.learner.seeds.size):
        code = int(found.reason[i])
        censored = REASONS[code] == "never_reached"
        ad = Result.missing(REASONS[code], censored=censored) if code else Result(float(found.epoch[i]))
        pd = performance_deficit(normal[i], their_normal[i])
        sfr_rel = shortcut_reliance(normal[i], masked[i], shortcut_reliance(their_normal[i], their_masked[i]))
        results.append(rigidity_composite(ad, pd, sfr_rel, budget=pair.budget, weights=weights))
    words = ", ".join(
        f"{weight:g} {name}" for weight, name in zip(weights, ("AD/budget", "PD", "SFR_rel"), strict=True)
    )
    return per_seed("eri_composite", results, {"weights": list(weights), "comment": f"{words}; signed"})
