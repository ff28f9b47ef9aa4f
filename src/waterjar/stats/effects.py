"""How large a difference is: Hedges' g, and the probability that one group beats the other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from waterjar.errors import unknown_name
from waterjar.stats.intervals import Interval
from waterjar.stats.samples import MIN_PAIRS, Array, check_between, constant, observed, observed_pairs, why_undefined

VARIANTS = ("g_s", "g_av", "g_z")
EFFECTS = {
    "g_s": "g_s: Hedges' g, in standard deviations over seeds of both groups, pooled",
    "g_av": "g_av: Hedges' g, in standard deviations over seeds of the two sides, averaged",
    "g_z": "g_z: Hedges' g, in standard deviations of the differences, where one side does not vary (a reference)",
}
"""Every effect size in words: they stand on different scales, and are not to be compared with each other."""


def effect_words(names: Iterable[str]) -> str:
    """What the effect sizes of a table are.

    >>> effect_words(["g_z", "", "g_z"])
    "Effect size g_z: Hedges' g, in standard deviations of the differences, where one side does not vary (a reference)."
    """
    used = [EFFECTS[name] for name in VARIANTS if name in set(names)]
    apart = " They stand on different scales: compare each with its own kind." if len(used) > 1 else ""
    return f"Effect size {'; '.join(used)}.{apart}" if used else ""


_NAN = float("nan")
# Beyond this t the distribution functions of scipy lose digits, while the limit of large t is right to 1 in 1,000.
_LARGE_T = 1000.0
_SMALL_T = 1e-8  # below it they overflow, and t is 0 to all digits that matter


def hedges_g(a: npt.ArrayLike, b: npt.ArrayLike, *, variant: str = "g_s", confidence: float = 0.95) -> Interval:
    """Give the standardised mean difference of a minus b, freed of its small-sample bias, with an interval.

    g = J(df) · (mean a - mean b) / s, with J(df) = Γ(df/2) / (√(df/2) Γ((df-1)/2)) (Hedges 1981).

    - `g_s`, independent groups: s² pooled, df = n_a + n_b - 2. The interval inverts the noncentral t distribution and
      is exact for normal groups of one variance.
    - `g_av`, paired by seed, on the scale of the groups, so that it compares with g_s: s² = (s_a² + s_b²)/2, df =
      2(n-1)/(1 + r²) (Cousineau & Goulet-Pelletier 2020; r = cov(a, b)/s²). Interval of Algina & Keselman (2003): the
      noncentral t interval of the paired t, times s_diff/(√n s); measured coverage at n = 3 ... 20: 92.5 to 97.5 %.
    - `g_z`, paired by seed, on the scale of the differences: s = s_diff, df = n - 1, exact interval. It grows with
      the correlation of the pairs, so it says how clear a difference is, not how large.

    The bounds are for the true standardised difference and carry no factor J. The effect is NaN, with a reason, where
    there is no spread to standardise by.

    >>> g = hedges_g([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    >>> round(g.estimate, 3), round(g.low, 3), round(g.high, 3)
    (1.596, -0.15, 4.019)
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    if variant not in VARIANTS:
        raise unknown_name("variant", variant, VARIANTS)
    if variant == "g_s":
        return _independent_g(a, b, confidence)
    return _paired_g(a, b, variant, confidence)


def probability_of_improvement(
    a: npt.ArrayLike, b: npt.ArrayLike, *, paired: bool = False, confidence: float = 0.95
) -> Interval:
    """Give P(A > B) + P(A = B)/2, with an interval; 0.5 means that neither is larger.

    Independent: over all n_a · n_b pairs, the Mann-Whitney U / (n_a n_b) (rliable's probability of improvement). The
    bounds θ solve |θ^ - θ| = z √V(θ) with V(θ) = θ(1-θ) [1 + k(1-θ)/(2-θ) + kθ/(1+θ)] / (n_a n_b) and
    k = (n_a + n_b)/2 - 1 (Newcombe 2006, Statistics in Medicine 25, part 2, method 5). They keep a width when
    every a beats every b, where a bootstrap has none. Measured coverage at 95 %: 90 % at 3 against 3 without a true
    difference (only ten values of the share are possible there), 94 to 97 % at 3 elsewhere and from 5 on.

    Paired: over the pairs, the share of seeds on which a is larger, with Wilson's score interval.

    >>> p = probability_of_improvement([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    >>> round(p.estimate, 4), p.n
    (0.9444, 3)
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    z = float(scipy.stats.norm.isf((1 - confidence) / 2))
    if paired:
        first, second, n_missing = observed_pairs(a, b)
        name, n = "improvement_wilson", first.size
    else:
        first, missing_a = observed(a, "a")
        second, missing_b = observed(b, "b")
        name, n, n_missing = "improvement_newcombe", min(first.size, second.size), missing_a + missing_b
    if n == 0:
        reason = "no pair is observed" if paired else "one group has no observed value"
        return Interval(_NAN, _NAN, _NAN, n, n_missing, name, confidence, reason)
    if paired:
        share = float(np.mean((first > second) + 0.5 * (first == second)))
        low, high = _wilson(share, n, z)
    else:
        wins = (first[:, None] > second) + 0.5 * (first[:, None] == second)
        share = float(np.mean(wins))
        low, high = _newcombe(share, first.size, second.size, z)
    return Interval(share, low, high, n, n_missing, name, confidence)


def small_sample_factor(df: float) -> float:
    """Return Hedges' J, the factor that frees a standardised difference of bias; df must exceed 1.

    >>> round(small_sample_factor(4), 4)
    0.7979
    """
    return float(np.exp(special.gammaln(df / 2) - special.gammaln((df - 1) / 2)) / np.sqrt(df / 2))


def noncentrality_bounds(t: float, df: float, confidence: float) -> tuple[float, float]:
    """Bound the noncentrality whose t distribution has `t` neither in its upper nor in its lower tail."""
    tail = (1 - confidence) / 2
    if t < 0:
        low, high = noncentrality_bounds(-t, df, confidence)
        return -high, -low
    if t > _LARGE_T:
        # t = (z + ncp) / √(χ²/df), and z no longer matters.
        ends = t * np.sqrt(scipy.stats.chi2.ppf([tail, 1 - tail], df) / df)
        return float(ends[0]), float(ends[1])
    return _noncentrality(t, df, 1 - tail), _noncentrality(t, df, tail)


def _noncentrality(t: float, df: float, p: float) -> float:
    """Solve P(T <= t) = p for the noncentrality; scipy's own inverse is a start that is right to two digits only."""
    if t < _SMALL_T:
        return -float(special.ndtri(p))  # P(T <= 0) = Φ(-ncp)
    guess = float(special.nctdtrinc(df, p, t))
    width = 0.001 * (1 + abs(guess))
    low, high = guess - width, guess + width
    while special.nctdtr(df, low, t) < p:
        low, width = low - width, 2 * width
    while special.nctdtr(df, high, t) > p:
        high, width = high + width, 2 * width
    return float(scipy.optimize.brentq(lambda ncp: special.nctdtr(df, ncp, t) - p, low, high, xtol=1e-10))


def _independent_g(a: npt.ArrayLike, b: npt.ArrayLike, confidence: float) -> Interval:
    first, missing_a = observed(a, "a")
    second, missing_b = observed(b, "b")
    n, n_missing = min(first.size, second.size), missing_a + missing_b
    reason = why_undefined(first, 2, "a") or why_undefined(second, 2, "b")
    scale = _scale(first, second)
    if not reason and constant(first, scale) and constant(second, scale):
        reason = "neither group has any spread: there is nothing to standardise by"
    if reason:
        return Interval(_NAN, _NAN, _NAN, n, n_missing, "g_s", confidence, reason)
    df = first.size + second.size - 2
    pooled = np.sqrt(((first.size - 1) * first.var(ddof=1) + (second.size - 1) * second.var(ddof=1)) / df)
    d = float((first.mean() - second.mean()) / pooled)
    to_t = float(np.sqrt(first.size * second.size / (first.size + second.size)))
    low, high = noncentrality_bounds(d * to_t, df, confidence)
    return Interval(d * small_sample_factor(df), low / to_t, high / to_t, n, n_missing, "g_s", confidence)


def _paired_g(a: npt.ArrayLike, b: npt.ArrayLike, variant: str, confidence: float) -> Interval:
    first, second, n_missing = observed_pairs(a, b)
    n = first.size
    reason = f"{n} pairs, at least {MIN_PAIRS} are needed" if n < MIN_PAIRS else ""
    reason = reason or why_undefined(first, MIN_PAIRS, "a") or why_undefined(second, MIN_PAIRS, "b")
    if reason:
        return Interval(_NAN, _NAN, _NAN, n, n_missing, variant, confidence, reason)
    scale = _scale(first, second)
    differences = np.sort(first - second)
    level = constant(differences, scale)
    if variant == "g_z" and level:
        reason = "all differences are equal: there is nothing to standardise by"
    elif constant(first, scale) and constant(second, scale):
        reason = "neither group has any spread: there is nothing to standardise by"
    if reason:
        return Interval(_NAN, _NAN, _NAN, n, n_missing, variant, confidence, reason)
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if variant == "g_z":
        s, df = spread, float(n - 1)
    else:
        s = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))
        correlation = float(np.cov(first, second)[0, 1]) / s**2
        df = 2 * (n - 1) / (1 + correlation**2)
    estimate = mean / s * small_sample_factor(df)
    if level:
        reason = "all differences are equal: the paired t, which the bounds come from, has no scale"
        return Interval(estimate, _NAN, _NAN, n, n_missing, variant, confidence, reason)
    error = spread / np.sqrt(n)
    low, high = noncentrality_bounds(mean / error, n - 1, confidence)
    return Interval(estimate, low * error / s, high * error / s, n, n_missing, variant, confidence)


def _scale(first: Array, second: Array) -> float:
    both = np.concatenate([first, second])
    return float(np.abs(both).max()) if both.size else 0.0


def _newcombe(share: float, n_a: int, n_b: int, z: float) -> tuple[float, float]:
    k = (n_a + n_b) / 2 - 1

    def excess(theta: float) -> float:
        variance = theta * (1 - theta) * (1 + k * (1 - theta) / (2 - theta) + k * theta / (1 + theta)) / (n_a * n_b)
        return (share - theta) ** 2 - z**2 * variance

    # Inside (0, 1) the excess is negative at θ = share and positive at 0 and 1. At share 0 or 1 it is 0 there and
    # negative just inside, so that the other bound still has a bracket.
    inside = min(max(share, 1e-9), 1 - 1e-9)
    low = 0.0 if share == 0 else float(scipy.optimize.brentq(excess, 0.0, inside))
    high = 1.0 if share == 1 else float(scipy.optimize.brentq(excess, inside, 1.0))
    return low, high


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Wilson's interval of a share that may count halves; scipy's takes whole counts only."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))
