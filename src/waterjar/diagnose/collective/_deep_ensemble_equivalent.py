"""How many members of the baseline's deep ensemble are as good as the collective?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective._nll_calibrated import calibrated
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def deep_ensemble_equivalent(nll: float, curve: ArrayLike) -> Result:
    """The smallest number of members whose calibrated NLL is as low as `nll`, between members by straight lines.

    `curve` (member,) is the calibrated NLL with 1, 2, ... members. `never_reached` where all of them together are
    worse, undefined where one member alone is better.

    >>> float(deep_ensemble_equivalent(0.35, [0.5, 0.4, 0.3]))
    2.5
    """
    losses = np.asarray(curve, np.float64)
    slack = 1e-9 * max(1.0, abs(nll))
    if nll > losses[0] + slack:
        return Result.missing("undefined", f"NLL {nll:.4g}: worse than one member, which has {losses[0]:.4g}")
    able = np.flatnonzero(losses <= nll + slack)
    if not len(able):
        note = f"NLL {nll:.4g}: better than all {len(losses)} members together, which have {losses.min():.4g}"
        return Result.missing("never_reached", note, censored=True)
    size = int(able[0])
    if size == 0 or losses[size] >= nll - slack:
        return Result(float(size + 1))
    before = losses[size - 1]
    return Result(float(size + (before - nll) / (before - losses[size])))


@metric(
    "deep_ensemble_equivalent",
    family="collective",
    long_name="deep-ensemble equivalent: members of the baseline with the same calibrated NLL",
    formula="min l with NLL_calibrated(ensemble of l) <= NLL_calibrated(collective), linear in between",
    units="member",
    direction="higher",
    range=(1, np.inf),
    citation="Ashukha et al. 2020, Pitfalls of in-domain uncertainty estimation and ensembling in deep learning",
    needs=("streams/collective_logits", "probe_samples/label"),
    summary="deep_ensemble_equivalent_final",
    symbol="DEE",
    between_seeds=True,
    made_of=("nll_calibrated",),
)
def _measure(outputs: StreamOutputs, *, resampling_seed: int) -> Result:
    found = calibrated(outputs, resampling_seed)
    if isinstance(found, Result):
        return found
    control = outputs.control
    if control is None or control.missing is not None:
        return Result.missing("no_baseline") if control is None or control.missing is None else control.missing
    return deep_ensemble_equivalent(found[0], control.nll)
