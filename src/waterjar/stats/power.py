"""How many seeds would settle it: the power of t tests, by the noncentral t distribution."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.correlation import EXACT_UP_TO
from waterjar.stats.samples import check_between

_NAN = float("nan")
ALTERNATIVES = ("two-sided", "one-sided")
_SIMULATED_UP_TO = 30  # runs: beyond, Fisher's formula holds for Spearman's too
# What `_simulated` finds for power .8 and alpha .05 with 200,000 trials.
_DETECTABLE = {
    5: 0.9973, 6: 0.9699, 7: 0.9174, 8: 0.866, 9: 0.8264, 10: 0.7997, 11: 0.7744, 12: 0.7474,
    13: 0.7215, 14: 0.6996, 15: 0.6793, 16: 0.6622, 17: 0.6439, 18: 0.6285, 19: 0.6121, 20: 0.6002,
    21: 0.5871, 22: 0.5733, 23: 0.5631, 24: 0.5514, 25: 0.5408, 26: 0.5318, 27: 0.5222, 28: 0.5138,
    29: 0.5057, 30: 0.4966,
}  # fmt: skip


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
    """Return the smallest true correlation that a two-sided test of n runs shows with `power`; NaN where none is.

    Pearson's: by Fisher's z of r, which is normal about atanh(rho) + rho/(2 (n - 1)) with the variance 1/(n - 3),
    against the critical r of the t test (as in R's pwr.r.test); NaN below four runs. Spearman's up to 30 runs: by
    simulation of normal pairs with the rank correlation rho (Pearson's is 2 sin(pi rho/6)), tested as `correlate_pair`
    does; NaN where even a perfect order is not significant (up to four runs at alpha = .05). Beyond 30 by Fisher's z
    with the variance 1.06/(n - 3) (Fieller, Hartley & Pearson 1957). It is that of one pair alone: a correction
    over many pairs asks for more.

    >>> round(detectable_correlation(12), 2), round(detectable_correlation(84), 2)
    (0.72, 0.3)
    >>> detectable_correlation(4, method="spearman"), detectable_correlation(12, method="spearman")
    (nan, 0.7474)
    """
    check_between(alpha, 0.0, 1.0, "alpha")
    check_between(power, alpha, 1.0, "power")
    if method not in ("pearson", "spearman"):
        raise unknown_name("method", method, ("pearson", "spearman"))
    if n < 4:
        return _NAN
    if method == "spearman" and n <= _SIMULATED_UP_TO:
        known = _DETECTABLE.get(n) if (power, alpha) == (0.8, 0.05) else None
        return _simulated(n, power, alpha) if known is None else known
    beyond = np.arctanh(_critical_by_t(n, alpha))
    beyond += scipy.stats.norm.ppf(power) * np.sqrt((1.0 if method == "pearson" else 1.06) / (n - 3))
    z = scipy.optimize.brentq(lambda z: z + np.tanh(z) / (2 * (n - 1)) - beyond, -20.0, 20.0, xtol=1e-12)
    return float(np.tanh(z))


@functools.lru_cache(maxsize=256)
def _simulated(n: int, power: float, alpha: float, trials: int = 20_000) -> float:
    """Spearman's rho of a normal pair that n runs show with `power`: bisection on the same draws, to 1e-4."""
    critical = _critical_by_order(n, alpha) if n <= EXACT_UP_TO else _critical_by_t(n, alpha)
    if critical > 1:
        return _NAN
    x, e = np.random.default_rng(n).normal(size=(2, trials, n))
    x.sort(axis=1)  # so the place in a row is the rank of x
    places = np.arange(n) - (n - 1) / 2
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        rho = (low + high) / 2
        linear = 2 * np.sin(np.pi * rho / 6)
        ranks_of_x = np.argsort(linear * x + np.sqrt(1 - linear**2) * e, axis=1)
        r = ranks_of_x @ places / (places @ places)
        if np.mean(np.abs(r) >= critical - 1e-9) < power:
            low = rho
        else:
            high = rho
    return round(high, 4)


def _critical_by_t(n: int, alpha: float) -> float:
    """The least |r| of n runs that a two-sided t test calls significant."""
    t = scipy.stats.t.isf(alpha / 2, n - 2)
    return float(t / np.sqrt(n - 2 + t**2))


def _critical_by_order(n: int, alpha: float) -> float:
    """The least |r| whose share among all n! orders is alpha at most; infinite where a perfect one is not."""
    places = np.arange(n) - (n - 1) / 2
    orders = np.array(list(itertools.permutations(range(n))))
    sizes = np.round(np.abs(orders @ places) / (places @ places), 9)
    values, counts = np.unique(sizes, return_counts=True)
    significant = values[counts[::-1].cumsum()[::-1] / len(orders) <= alpha]
    return float(significant.min(initial=np.inf))


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
