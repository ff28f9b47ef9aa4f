"""How evenly a representation spreads over directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result


@metric(
    "effective_rank",
    family="plasticity",
    long_name="effective rank: exponential of the entropy of the singular values",
    formula="exp(-sum p log p), p = s / sum s",
    direction="higher",
    range=(1, np.inf),
    citation="Roy & Vetterli 2007, def. 1",
    needs=("features",),
    summary="effective_rank_final",
    matters=2,
    made_of=("singular values of features",),
)
def effective_rank(features: Features) -> Result:
    """exp of the entropy of s / sum s, s the singular values; undefined for features that are all zero.

    Parameters
    ----------
    features : (sample, unit), not centred.

    >>> round(float(effective_rank([[2.0, 0.0], [0.0, 2.0]])), 9)
    2.0
    """
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    return rank_of(shot.singular_values, n=len(shot.features))


def rank_of(values: NDArray[np.float64], n: int) -> Result:
    """The effective rank of a matrix with these singular values."""
    total = values.sum()
    if total == 0.0:
        return Result.missing("undefined", "all values are zero", n=n)
    share = values[values > 0.0] / total
    share = share[share > 0.0]  # a subnormal value divided by the total may vanish
    return Result(float(np.exp(-(share * np.log(share)).sum())), n=n)
