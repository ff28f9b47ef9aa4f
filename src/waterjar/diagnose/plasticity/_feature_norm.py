"""How large features are."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.magnitude import scaled_back
from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result


@metric(
    "feature_norm",
    family="plasticity",
    long_name="norm of a sample's features, mean over samples",
    formula="mean over samples of ||h||_2",
    range=(0, np.inf),
    citation="Plasticine, Yuan et al. 2025",
    needs=("features",),
    summary="feature_norm_final",
)
def feature_norm(features: Features) -> Result:
    """Mean over samples of the L2 norm.

    Parameters
    ----------
    features : (sample, unit).

    >>> float(feature_norm([[3.0, 4.0], [0.0, 1.0]]))
    3.0
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    norm = float(np.sqrt(np.einsum("su,su->s", shot.live, shot.live)).mean())
    return scaled_back(norm, shot.exponent, n=len(shot.features))
