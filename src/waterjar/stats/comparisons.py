"""One group of seeds against another: the difference, its interval, the test, what the design could show at best."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats import significance
from waterjar.stats.effects import hedges_g, probability_of_improvement
from waterjar.stats.samples import (
    MIN_PAIRS,
    Array,
    Rng,
    check_between,
    constant,
    observed,
    observed_pairs,
    why_undefined,
)

INDEPENDENT = ("welch", "mann_whitney", "permutation")
PAIRED = ("paired_t", "wilcoxon", "permutation")
ALTERNATIVES = ("two-sided", "greater", "less")
_NAN = float("nan")


@dataclass(frozen=True)
class Comparison:
    """Group a against group b. `reason` says why a number is NaN, `note` how the p value was found."""

    test: str
    test_statistic: float
    p_value: float
    effect_size: float
    significant: bool
    difference: float
    low: float
    high: float
    mean_a: float
    mean_b: float
    n_a: int
    n_b: int
    n_missing: int
    paired: bool
    alternative: str
    alpha: float
    effect_name: str
    effect_low: float
    effect_high: float
    improvement: float
    improvement_low: float
    improvement_high: float
    smallest_p: float
    smallest_exact_p: float
    reason: str = ""
    note: str = ""

    def __float__(self) -> float:
        return self.difference

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table."""
        return asdict(self)


def compare(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    paired: bool | None = None,
    test: str | None = None,
    alternative: str = "two-sided",
    alpha: float = 0.05,
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> Comparison:
    """Compare the values of a with those of b, one number per seed each.

    Parameters
    ----------
    a, b:
        Shapes (seed,). Paired: `a[i]` and `b[i]` share a seed (see `pair_by_seed`). NaN is a missing seed, left
        out (with its partner, when paired) and counted in `n_missing`.
    paired:
        Whether the design pairs; by default what `test` implies, else independent.
    test:
        `welch` (default), `mann_whitney`, `permutation` for independent groups; `paired_t` (default when paired),
        `wilcoxon`, `permutation` for pairs. Exact wherever that means at most 20,000 arrangements.
    alternative:
        `greater` asks whether a is larger.

    Returns
    -------
    The difference mean(a) - mean(b) with its two-sided t interval at 1 - alpha (Welch or paired, whatever the
    test), the test, Hedges' g (`g_s`; paired `g_av`, or `g_z` where one side does not vary) and the probability of
    improvement with intervals. `smallest_p` is the smallest p that this test can give with so many
    seeds: 0 for t tests, which have no such floor because they assume the distribution. `smallest_exact_p` is that of
    the exact permutation test, which assumes none.

    >>> result = compare([0.81, 0.84, 0.80], [0.70, 0.73, 0.71], test="permutation")
    >>> round(result.difference, 3), result.p_value, result.smallest_p
    (0.103, 0.1, 0.1)
    """
    is_paired, name = _design(paired, test)
    if alternative not in ALTERNATIVES:
        raise unknown_name("alternative", alternative, ALTERNATIVES)
    check_between(alpha, 0.0, 1.0, "alpha")
    if is_paired:
        first, second, n_missing = observed_pairs(a, b)
    else:
        first, missing_a = observed(a, "a")
        second, missing_b = observed(b, "b")
        n_missing = missing_a + missing_b
    # A side without spread is a reference (the baseline of a metric that is a difference to it already): averaging its
    # spread in would make the effect larger by sqrt 2.
    variant = "g_s" if not is_paired else "g_z" if _reference(first, second) else "g_av"
    effect = hedges_g(first, second, variant=variant, confidence=1 - alpha)
    improvement = probability_of_improvement(first, second, paired=is_paired, confidence=1 - alpha)
    difference, low, high, interval_reason = significance.difference_interval(first, second, is_paired, 1 - alpha)
    outcome = _outcome(first, second, is_paired, name, alternative, n_resamples, rng)
    reasons = dict.fromkeys(text for text in (outcome.reason, interval_reason, effect.reason) if text)
    return Comparison(
        test=name,
        test_statistic=outcome.statistic,
        p_value=outcome.p_value,
        effect_size=effect.estimate,
        significant=bool(outcome.p_value <= alpha) and not (is_paired and first.size < MIN_PAIRS),
        difference=difference,
        low=low,
        high=high,
        mean_a=_mean(first),
        mean_b=_mean(second),
        n_a=first.size,
        n_b=second.size,
        n_missing=n_missing,
        paired=is_paired,
        alternative=alternative,
        alpha=alpha,
        effect_name=effect.method,
        effect_low=effect.low,
        effect_high=effect.high,
        improvement=improvement.estimate,
        improvement_low=improvement.low,
        improvement_high=improvement.high,
        smallest_p=outcome.smallest_p,
        smallest_exact_p=smallest_exact_p(first.size, second.size, paired=is_paired, alternative=alternative),
        reason="; ".join(reasons),
        note=outcome.note,
    )


def smallest_exact_p(n_a: int, n_b: int | None = None, *, paired: bool, alternative: str = "two-sided") -> float:
    """Return the smallest p that an exact test of this design can reach, whatever the data.

    Independent: 2/C(n_a + n_b, n_a); paired: 2/2ⁿ; half of that one-sided. NaN without seeds.

    >>> smallest_exact_p(3, 3, paired=False), smallest_exact_p(3, paired=True)
    (0.1, 0.25)
    """
    other = n_a if n_b is None else n_b
    if min(n_a, other) == 0:
        return _NAN
    arrangements = 2**n_a if paired else math.comb(n_a + other, n_a)
    return min(1.0, (2 if alternative == "two-sided" else 1) / arrangements)


def _reference(first: Array, second: Array) -> bool:
    """Whether one of two paired sides does not vary, and the other does or may."""
    return first.size > 1 and (constant(first) or constant(second))


def _design(paired: bool | None, test: str | None) -> tuple[bool, str]:
    known = (*INDEPENDENT, *PAIRED[:-1])
    if test is not None and test not in known:
        raise unknown_name("test", test, known)
    is_paired = test in PAIRED and test not in INDEPENDENT if paired is None else paired
    name = test or ("paired_t" if is_paired else "welch")
    allowed = PAIRED if is_paired else INDEPENDENT
    if name not in allowed:
        design = "a paired design" if is_paired else "independent groups"
        raise WaterjarError(
            f"test='{name}' does not fit {design} (paired={is_paired}): take one of {', '.join(allowed)}"
        )
    return is_paired, name


def _outcome(
    first: Array, second: Array, paired: bool, name: str, alternative: str, n_resamples: int, rng: Rng
) -> significance.Outcome:
    reason = why_undefined(first, 2, "a") or why_undefined(second, 2, "b")
    floor = smallest_exact_p(first.size, second.size, paired=paired, alternative=alternative)
    if reason:
        return significance.Outcome(_NAN, _NAN, 0.0 if name in ("welch", "paired_t") else floor, reason=reason)
    scale = float(np.abs(np.concatenate([first, second])).max())
    if name in ("welch", "paired_t"):
        flat = constant(first - second, scale) if paired else constant(first, scale) and constant(second, scale)
        if flat:
            return _without_spread(first, second, scale, paired)
        t_test = significance.paired_t if paired else significance.welch
        return t_test(first, second, alternative)
    if name == "mann_whitney":
        return significance.mann_whitney(first, second, alternative, floor)
    if name == "wilcoxon":
        return significance.wilcoxon(first, second, alternative)
    return significance.permutation(first, second, paired, alternative, floor, n_resamples, rng)


def _without_spread(first: Array, second: Array, scale: float, paired: bool) -> significance.Outcome:
    if constant(np.array([first.mean(), second.mean()]), scale):
        return significance.Outcome(0.0, 1.0, 0.0, note="the values are identical: p is 1 by definition")
    what = "all differences are equal" if paired else "neither group has any spread"
    return significance.Outcome(
        _NAN, _NAN, 0.0, reason=f"{what}: the t test has no scale. An exact test still has an answer"
    )


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size and np.isfinite(values).all() else _NAN
