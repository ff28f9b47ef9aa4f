"""Linear centred kernel alignment: how similar two representations of the same samples are."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.drift.cloud import Cloud, Points, inner_square, same_samples
from waterjar.diagnose.drift.inputs import Comparison
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result

_NOTHING = 1e-12
"""A self-similarity below this share of its scale is rounding."""


def linear_cka(a: Points, b: Points, *, debiased: bool = True) -> Result:
    """Linear CKA of two representations of the same samples.

    HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)) with K = A A^T, L = B B^T (Kornblith et al. 2019, eq. 4 and 5). The
    debiased form takes HSIC_1 (Song et al. 2012, eq. 5; Nguyen et al. 2021, eq. 3), with ~K = K without its diagonal:

        [tr(~K ~L) + 1'~K 1 1'~L 1 / ((n-1)(n-2)) - 2/(n-2) 1'~K ~L 1] / (n (n-3))

    The biased form tends to 1 when there are more units than samples, even of noise; the debiased one tends to 0, and
    may be slightly negative. No n x n matrix is made unless that is the smaller one.

    Parameters
    ----------
    a : (sample, unit), b : (sample, other unit), row by row the same samples.
    debiased : needs at least 4 samples.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((20, 3))
    >>> round(float(linear_cka(x, -2 * x + 5)), 12)
    1.0
    """
    one, two = same_samples(a, b)
    if one.missing or two.missing:
        return one.missing or two.missing  # type: ignore[return-value]
    n = len(one.features)
    if debiased and n < 4:
        return Result.missing("undefined", f"the debiased form needs 4 samples, not {n}", n=n)
    selves = [_similarity(cloud, cloud, debiased) for cloud in (one, two)]
    if any(own <= _NOTHING * cloud.total**2 for own, cloud in zip(selves, (one, two), strict=True)):
        return Result.missing("undefined", "a representation that does not vary over samples", n=n)
    return Result(float(_similarity(one, two, debiased) / np.sqrt(selves[0]) / np.sqrt(selves[1])), n=n)


def _similarity(a: Cloud, b: Cloud, debiased: bool) -> float:
    """||A^T B||_F^2, or n (n - 3) HSIC_1: centred rows of K sum to 0, those of ~K to minus its diagonal."""
    square = a.own_square if a is b else inner_square(a, b)
    if not debiased:
        return square
    n = len(a.features)
    both = float(a.squares @ b.squares)
    cross = square - both
    return cross + a.total * b.total / ((n - 1) * (n - 2)) - 2.0 * both / (n - 2)


@metric(
    "cka",
    family="drift",
    long_name="similarity (debiased linear CKA) to the first snapshot, the end of the task before, the one before",
    formula="HSIC_1(K, L) / sqrt(HSIC_1(K, K) HSIC_1(L, L)), K = F F^T of one snapshot, L of the other",
    range=(-1, 1),
    citation="Kornblith et al. 2019, eq. 5; Song et al. 2012, eq. 5",
    needs=("features",),
    summary="cka_final",
    matters=1,
    made_of=("F . F_other",),
)
def _measure(pair: Comparison) -> Result:
    return linear_cka(pair.now, pair.other)
