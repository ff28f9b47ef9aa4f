"""McNemar's test: do two classifiers differ, by the samples that only one of them has right?"""

from __future__ import annotations

from typing import Literal, get_args

import scipy

from waterjar.errors import WaterjarError, unknown_name

McNemar = Literal["mid_p", "exact", "chi2"]
METHODS: tuple[str, ...] = get_args(McNemar)


def mcnemar_p(only_one: int, only_other: int, method: str = "mid_p") -> float:
    """The two-sided p of as many samples that only one, and only the other, has right; those of both do not count.

    `exact`: binomial with 1/2 (McNemar 1947 in its exact form). `mid_p`: the same less half the probability of what was
    observed; it keeps its level in practice and loses little power (Fagerland, Lydersen & Laake 2013). `chi2`: with
    Edwards' correction. It is a statement about these two trained networks on other samples, and says nothing about
    other seeds (Dietterich 1998).

    >>> round(mcnemar_p(8, 2, "exact"), 4), round(mcnemar_p(8, 2), 4)
    (0.1094, 0.0654)
    """
    if method not in METHODS:
        raise unknown_name("McNemar's test: method", method, METHODS)
    if min(only_one, only_other) < 0:
        raise WaterjarError(f"{only_one} and {only_other} samples: expected two counts")
    n = only_one + only_other
    if not n:
        return 1.0
    if method == "chi2":
        statistic = max(abs(only_one - only_other) - 1, 0) ** 2 / n
        return float(scipy.stats.chi2.sf(statistic, 1))
    if method == "exact":
        return float(scipy.stats.binomtest(only_one, n, 0.5).pvalue)
    fewer = min(only_one, only_other)
    return float(2 * scipy.stats.binom.cdf(fewer, n, 0.5) - scipy.stats.binom.pmf(fewer, n, 0.5))
