"""How many directions hold nearly all of a representation: the seed's stable rank, srank elsewhere."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import Features, Representation
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


@metric(
    "stable_rank",
    family="plasticity",
    long_name="number of singular values that sum to more than 99 % (srank; not the textbook stable rank)",
    formula="smallest k >= 1 with s_1 + ... + s_k > energy (0.99) * sum s; 0 for features that are all zero",
    direction="higher",
    range=(0, np.inf),
    citation="Kumar et al. 2021, sec. 3",
    needs=("features",),
    summary="stable_rank_final",
    unlike="the textbook's is spectral_stable_rank",
    made_of=("singular values of features",),
)
def stable_rank(features: Features, *, energy: float = 0.99) -> Result:
    """Smallest k >= 1 such that the k largest singular values sum to MORE than `energy` of the total; 0 for zeros.

    Called srank in Kumar et al. 2021 (there >=); `spectral_stable_rank` is what textbooks call stable rank.

    Parameters
    ----------
    features : (sample, unit), not centred.

    >>> float(stable_rank([[99.0, 0.0], [0.0, 1.0]])), float(stable_rank([[100.0, 0.0], [0.0, 1.0]]))
    (2.0, 1.0)
    """
    if not 0.0 < energy < 1.0:
        raise WaterjarError(f"energy={energy}: expected a share between 0 and 1")
    shot = Representation.of(features)
    if shot.missing:
        return shot.missing
    held = np.cumsum(shot.singular_values)
    rank = np.count_nonzero(held <= energy * held[-1]) + 1 if held[-1] > 0.0 else 0
    return Result(float(rank), n=len(shot.features))
