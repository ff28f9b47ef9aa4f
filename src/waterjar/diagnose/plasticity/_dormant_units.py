"""Units that hardly ever respond."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result


@metric(
    "dormant_units",
    family="plasticity",
    long_name="share of units whose mean activation is at most a tenth of the layer's",
    formula="share of units with mean over samples of |h| <= tau (0.1) * its mean over units; 1 for a dead layer",
    direction="lower",
    range=(0, 1),
    citation="Sokar et al. 2023 (ReDo), eq. 1",
    needs=("features",),
    summary="dormant_units_final",
    matters=1,
)
def dormant_units(features: Features, *, tau: float = 0.1) -> Result:
    """Share of dormant units: mean over samples of |h| <= tau x its mean over units; 1.0 for a dead layer.

    |h| is what the ReDo paper takes (Sokar et al. 2023, eq. 1). Where activations are never negative it is the mean
    activation itself; where they can be, a plain mean would call a unit dormant whose responses cancel.

    Parameters
    ----------
    features : (sample, unit).
    tau : the share of the layer's mean below or at which a unit is dormant.

    >>> float(dormant_units([[1.0, 0.0, -2.0], [1.0, 0.0, 2.0]]))
    0.3333333333333333
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    n, units = shot.features.shape
    if not shot.live.size:
        return Result(1.0, n=n)
    response = shot.mean if shot.live.min() >= 0.0 else np.abs(shot.live).mean(axis=0)
    dead = units - len(response)
    dormant = np.count_nonzero(response <= tau * (response.sum() / units))
    return Result((dead + dormant) / units, n=n)
