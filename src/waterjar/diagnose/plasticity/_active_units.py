"""How much of a layer responds to a sample."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result


@metric(
    "active_units",
    family="plasticity",
    long_name="share of units that are active, mean over samples",
    formula="mean over samples of the share of units with h > 0",
    range=(0, 1),
    citation="Plasticine, Yuan et al. 2025",
    needs=("features",),
    summary="active_units_final",
)
def active_units(features: Features) -> Result:
    """Mean over samples of the share of units with an activation above 0.

    Parameters
    ----------
    features : (sample, unit).

    >>> float(active_units([[1.0, 0.0], [2.0, 3.0]]))
    0.75
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    return Result(np.count_nonzero(shot.features > 0) / shot.features.size, n=len(shot.features))
