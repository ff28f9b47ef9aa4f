"""The textbook's stable rank."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result


@metric(
    "spectral_stable_rank",
    family="plasticity",
    long_name="stable rank of the textbooks: squared Frobenius norm over squared spectral norm",
    formula="||F||_F^2 / ||F||_2^2",
    direction="higher",
    range=(1, np.inf),
    citation="Rudelson & Vershynin 2007",
    needs=("features",),
    summary="spectral_stable_rank_final",
    made_of=("singular values of features",),
)
def spectral_stable_rank(features: Features) -> Result:
    """||F||_F^2 / ||F||_2^2, undefined for features that are all zero.

    Parameters
    ----------
    features : (sample, unit), not centred.

    >>> float(spectral_stable_rank([[2.0, 0.0], [0.0, 1.0]]))
    1.25
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    values = shot.singular_values
    if values[0] == 0.0:
        return Result.missing("undefined", "all features are zero", n=len(shot.features))
    return Result(float(np.square(values / values[0]).sum()), n=len(shot.features))
