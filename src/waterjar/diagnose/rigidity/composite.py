"""One number for the index, only on request: signed, its weights beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.adaptation import delay
from waterjar.diagnose.rigidity.deficit import performance_deficit
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result
from waterjar.diagnose.rigidity.reliance import shortcut_reliance
from waterjar.errors import WaterjarError

WEIGHTS = (0.4, 0.4, 0.2)


def rigidity_composite(
    ad: Number, pd: Number, sfr_rel: Number, *, budget: float, weights: Sequence[float] = WEIGHTS
) -> Result:
    """w_1 AD / budget + w_2 PD + w_3 SFR_rel, signed.

    Nothing is made absolute or cut off at 0: |AD| or max(0, PD) would hide the very pattern the index is for, a
    learner that is quick and accurate because it took the shortcut. Equal scores can come from opposite patterns.

    >>> round(float(rigidity_composite(-5, -0.1, 0.2, budget=10)), 3)
    -0.2
    """
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < np.inf:
        raise WaterjarError(f"budget={budget!r}: expected the number of epochs, above 0")
    factors = np.asarray(weights, np.float64)
    if factors.shape != (3,) or not np.isfinite(factors).all():
        raise WaterjarError(f"weights={weights!r}: expected three numbers, one each of AD, PD and SFR_rel")
    terms = [
        as_result(ad, "ad", -np.inf, np.inf),
        as_result(pd, "pd", -1.0, 1.0),
        as_result(sfr_rel, "sfr_rel", -2.0, 2.0),
    ]
    codes = np.asarray(0)
    for term in terms:
        codes = np.where(codes > 0, codes, term.code)
    parts = [np.divide(terms[0].value, budget), terms[1].value, terms[2].value]
    total = sum(factor * np.asarray(part) for factor, part in zip(factors, parts, strict=True))
    censored = np.logical_or.reduce([np.broadcast_to(term.censored, np.shape(total)) for term in terms])
    note = next((term.note for term in terms if term.note), "")
    return Result.of(total, codes, censored=censored[()], note=note)


@metric(
    "eri_composite",
    family="rigidity",
    long_name="weighted sum of AD / budget, PD and SFR_rel; only with composite=True",
    formula="0.4 AD / budget + 0.4 PD + 0.2 SFR_rel, signed",
    citation="Gu & Shi, The Einstellung Rigidity Index; weights of the waterjar specification",
    needs=("performance[t2_shortcut_normal]", "performance[t2_shortcut_masked]", "performance[t2_validation]"),
    optional="rigidity.composite=true",
    made_of=("ad", "pd", "sfr_rel"),
)
def _composite(pair: Pair) -> Result | None:
    if not pair.settings.composite:
        return None
    normal, masked = pair.final("normal"), pair.final("masked")
    their_normal, their_masked = pair.final("normal", of_baseline=True), pair.final("masked", of_baseline=True)
    return rigidity_composite(
        Result.of(*delay(*pair.at_threshold)),
        performance_deficit(normal, their_normal),
        shortcut_reliance(normal, masked, shortcut_reliance(their_normal, their_masked)),
        budget=float(pair.budget),
        weights=pair.settings.weights,
    )
