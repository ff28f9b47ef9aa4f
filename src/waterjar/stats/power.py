"""How many seeds would settle it: the power of t tests, by the noncentral t distribution."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.samples import check_between

_NAN = float("nan")
ALTERNATIVES = ("two-sided", "one-sided")


@dataclass(frozen=True)
class SeedsNeeded:
    """Seeds (pairs, or runs in each group) that show `difference` with probability `power`; NaN with a reason."""

    n: float
    reached_power: float
    difference: float
    spread: float
    paired: bool
    power: float
    alpha: float
    alternative: str
    reason: str = ""

    def __float__(self) -> float:
        return self.n

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table."""
        return asdict(self)


def power_of(
    n: int, difference: float, spread: float, *, paired: bool, alpha: float = 0.05, alternative: str = "two-sided"
) -> float:
    """Return the probability that n seeds show a true `difference`.

    Parameters
    ----------
    n:
        Pairs when paired, else runs in EACH of the two groups; 2 at least.
    spread:
        Standard deviation over seeds: of the differences when paired, else of one group (pooled).
    alternative:
        `one-sided`: the direction was named before looking.

    Power = P(|T| > t_crit), T noncentral t with ncp = |difference|/spread · √n (√(n/2) for two groups) and n - 1
    (2n - 2) degrees of freedom (Cohen 1988). For two groups it assumes one spread, where Welch's and Student's test
    have nearly the same power.

    >>> round(power_of(64, 0.5, 1.0, paired=False), 3)
    0.801
    """
    _check(spread, alpha, alternative)
    if n < 2:
        raise WaterjarError(f"n={n}: a t test needs two seeds at least")
    if math.isnan(difference) or math.isnan(spread):
        return _NAN
    if spread == 0:
        return 1.0 if difference != 0 else alpha
    return _power(n, abs(difference) / spread, paired, alpha, alternative)


def seeds_needed(
    difference: float,
    spread: float,
    *,
    paired: bool,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: str = "two-sided",
    cap: int = 10_000,
) -> SeedsNeeded:
    """Find the fewest seeds that show a true `difference` with at least `power`; arguments as in `power_of`.

    A spread seen in three seeds is itself uncertain: the true one may be up to six times larger (95 %, chi-square),
    and the number of seeds goes with its square. Take the answer as an order of magnitude.

    >>> seeds_needed(0.02, 0.03, paired=True).n
    20.0
    """
    _check(spread, alpha, alternative)
    check_between(power, alpha, 1.0, "power")

    def answer(n: float, reached: float, reason: str = "") -> SeedsNeeded:
        return SeedsNeeded(n, reached, difference, spread, paired, power, alpha, alternative, reason)

    if not (math.isfinite(difference) and math.isfinite(spread)):
        return answer(_NAN, _NAN, "difference or spread is not a finite number")
    if difference == 0:
        return answer(_NAN, alpha, "a difference of 0 is never shown; to show its absence, see tost")
    if spread == 0:
        return answer(2.0, 1.0, "no spread: two seeds would do, if there truly is none")
    effect = abs(difference) / spread
    if _power(cap, effect, paired, alpha, alternative) < power:
        return answer(_NAN, _power(cap, effect, paired, alpha, alternative), f"more than {cap} seeds")
    low, high = 1, 2  # power(low) is too small, or low is impossible
    while high < cap and _power(high, effect, paired, alpha, alternative) < power:
        low, high = high, min(2 * high, cap)
    while high - low > 1:
        middle = (low + high) // 2
        if _power(middle, effect, paired, alpha, alternative) < power:
            low = middle
        else:
            high = middle
    return answer(float(high), _power(high, effect, paired, alpha, alternative))


def detectable_difference(
    n: int, spread: float, *, paired: bool, power: float = 0.8, alpha: float = 0.05, alternative: str = "two-sided"
) -> float:
    """Return the smallest true difference that n seeds show with `power`; arguments as in `power_of`.

    >>> round(detectable_difference(3, 0.01, paired=True), 4)
    0.0326
    """
    _check(spread, alpha, alternative)
    check_between(power, alpha, 1.0, "power")
    if n < 2:
        raise WaterjarError(f"n={n}: a t test needs two seeds at least")
    if math.isnan(spread):
        return _NAN
    top = 1.0
    while _power(n, top, paired, alpha, alternative) < power:
        top *= 2
    effect = scipy.optimize.brentq(lambda d: _power(n, d, paired, alpha, alternative) - power, 0.0, top, xtol=1e-12)
    return float(effect) * spread


def detectable_correlation(n: int, *, method: str = "pearson", power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest true correlation that a two-sided test of n runs shows with `power`; NaN below four runs.

    By Fisher's z of r, which is normal about atanh(rho) + rho/(2 (n - 1)) with the variance 1/(n - 3), against the
    critical r of the t test (as in R's pwr.r.test); of Spearman's rank correlation the variance is 1.06/(n - 3)
    (Fieller, Hartley & Pearson 1957). It is that of one pair alone: a correction over many pairs asks for more. Below
    nine runs it errs on the side of caution: what it names is shown by six with 85 %.

    >>> round(detectable_correlation(12), 2), round(detectable_correlation(84), 2)
    (0.72, 0.3)
    """
    check_between(alpha, 0.0, 1.0, "alpha")
    check_between(power, alpha, 1.0, "power")
    if method not in ("pearson", "spearman"):
        raise unknown_name("method", method, ("pearson", "spearman"))
    if n < 4:
        return _NAN
    critical = scipy.stats.t.isf(alpha / 2, n - 2)
    beyond = np.arctanh(critical / np.sqrt(n - 2 + critical**2))
    beyond += scipy.stats.norm.ppf(power) * np.sqrt((1.0 if method == "pearson" else 1.06) / (n - 3))
    z = scipy.optimize.brentq(lambda z: z + np.tanh(z) / (2 * (n - 1)) - beyond, -20.0, 20.0, xtol=1e-12)
    return float(np.tanh(z))


def _power(n: int, effect: float, paired: bool, alpha: float, alternative: str) -> float:
    df = n - 1 if paired else 2 * n - 2
    ncp = effect * np.sqrt(n if paired else n / 2)
    if alternative == "one-sided":
        return float(scipy.stats.nct.sf(scipy.stats.t.isf(alpha, df), df, ncp))
    critical = scipy.stats.t.isf(alpha / 2, df)
    wrong_side = scipy.stats.nct.cdf(-critical, df, ncp)
    # scipy gives NaN for that tail where it is vanishing: from ncp = 5 on, and it is smaller than Φ(-ncp).
    return float(scipy.stats.nct.sf(critical, df, ncp) + (0.0 if np.isnan(wrong_side) else wrong_side))


def _check(spread: float, alpha: float, alternative: str) -> None:
    if spread < 0:
        raise WaterjarError(f"spread={spread} is impossible: a standard deviation is not negative")
    check_between(alpha, 0.0, 1.0, "alpha")
    if alternative not in ALTERNATIVES:
        raise unknown_name("alternative", alternative, ALTERNATIVES)
