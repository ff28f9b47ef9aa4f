"""The tests themselves: scipy's, called so that small samples get the exact one and no warning is left to guess about.

Each takes observed finite values, shapes (seed,), and returns an `Outcome`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from waterjar.stats.samples import Array, Rng, constant, why_undefined

EXACT_UP_TO = 20_000  # arrangements: 8 against 7 seeds, 14 pairs


@dataclass(frozen=True)
class Outcome:
    """What a test says; `smallest_p` is the least it could have said."""

    statistic: float
    p_value: float
    smallest_p: float
    reason: str = ""
    note: str = ""


def welch(first: Array, second: Array, alternative: str) -> Outcome:
    """Welch's t test; the statistic is t. One group may be constant, not both."""
    result = scipy.stats.ttest_ind_from_stats(
        first.mean(),
        first.std(ddof=1),
        first.size,
        second.mean(),
        second.std(ddof=1),
        second.size,
        equal_var=False,
        alternative=alternative,
    )
    return Outcome(float(result.statistic), float(result.pvalue), 0.0)


def paired_t(first: Array, second: Array, alternative: str) -> Outcome:
    """Student's t test of the differences; the statistic is t."""
    result = scipy.stats.ttest_1samp(np.sort(first - second), 0.0, alternative=alternative)
    return Outcome(float(result.statistic), float(result.pvalue), 0.0)


def mann_whitney(first: Array, second: Array, alternative: str, floor: float) -> Outcome:
    """Mann and Whitney's U of the first group; exact, with ties over all arrangements, while those are few."""
    both = np.concatenate([first, second])
    ties = np.unique(both).size < both.size
    arrangements = math.comb(both.size, first.size)
    method: Any
    if not ties and min(first.size, second.size) <= 20:
        method, note = "exact", "exact"
    elif arrangements <= EXACT_UP_TO:
        method, note = (
            scipy.stats.PermutationMethod(n_resamples=arrangements),
            "exact over all arrangements, because of ties",
        )
    elif constant(both):
        return Outcome(first.size * second.size / 2, 1.0, floor, note="the values are identical: p is 1 by definition")
    else:
        method, note, floor = "asymptotic", "normal approximation", 0.0
    result = scipy.stats.mannwhitneyu(first, second, alternative=alternative, method=method)
    return Outcome(float(result.statistic), min(1.0, float(result.pvalue)), floor, note=note)


def wilcoxon(first: Array, second: Array, alternative: str) -> Outcome:
    """Wilcoxon's signed-rank test; equal pairs are left out as he did, and with them goes some of the reachable p."""
    differences = np.sort(first - second)
    changed = differences[differences != 0]
    if changed.size == 0:
        return Outcome(0.0, 1.0, 1.0, note="the values are identical: p is 1 by definition")
    floor = min(1.0, (2 if alternative == "two-sided" else 1) / 2**changed.size)
    ties = np.unique(np.abs(changed)).size < changed.size
    method: Any
    if not ties and changed.size <= 50:
        method, note = "exact", "exact"
    elif 2**changed.size <= EXACT_UP_TO:
        method, note = (
            scipy.stats.PermutationMethod(n_resamples=2**changed.size),
            "exact over all signs, because of ties",
        )
    else:
        method, note, floor = "asymptotic", "normal approximation", 0.0
    result = scipy.stats.wilcoxon(changed, alternative=alternative, method=method)
    if changed.size < differences.size:
        note += f"; {differences.size - changed.size} equal pairs left out"
    return Outcome(float(result.statistic), min(1.0, float(result.pvalue)), floor, note=note)


def permutation(
    first: Array, second: Array, paired: bool, alternative: str, floor: float, n_resamples: int, rng: Rng
) -> Outcome:
    """Permutation test of the difference of means (paired: of signs); the statistic is that difference.

    All arrangements while they are few; otherwise `n_resamples` random ones, whose smallest p is that of the draw.
    """
    arrangements = 2**first.size if paired else math.comb(first.size + second.size, first.size)
    exact = arrangements <= max(EXACT_UP_TO, n_resamples)
    result = scipy.stats.permutation_test(
        (first, second),
        _difference_of_means,
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=arrangements if exact else n_resamples,
        batch=max(1, 2_000_000 // (first.size + second.size)),
        alternative=alternative,
        rng=np.random.default_rng(rng),
    )
    sides = 2 if alternative == "two-sided" else 1
    return Outcome(
        float(result.statistic),
        float(result.pvalue),
        floor if exact else max(floor, sides / (n_resamples + 1)),
        note=f"exact over {arrangements} arrangements" if exact else f"{n_resamples} random arrangements",
    )


def difference_interval(
    first: Array, second: Array, paired: bool, confidence: float
) -> tuple[float, float, float, str]:
    """Give (mean difference, low, high, reason) by Welch's or the paired t; NaN bounds come with a reason."""
    nan = float("nan")
    missing = why_undefined(first, 1, "a") or why_undefined(second, 1, "b")
    if missing:
        return nan, nan, nan, missing
    difference = float(np.sort(first - second).mean()) if paired else float(first.mean() - second.mean())
    single = why_undefined(first, 2, "a") or why_undefined(second, 2, "b")
    if single:
        return difference, nan, nan, single
    error, df = standard_error(first, second, paired)
    if error == 0:
        return difference, difference, difference, ""
    half = float(scipy.stats.t.isf((1 - confidence) / 2, df)) * error
    return difference, difference - half, difference + half, ""


def standard_error(first: Array, second: Array, paired: bool) -> tuple[float, float]:
    """Return (standard error, degrees of freedom) of the mean difference; Welch-Satterthwaite when independent.

    A spread that is only rounding counts as none: then the error is 0 and the degrees of freedom mean nothing.
    """
    scale = float(np.abs(np.concatenate([first, second])).max())
    if paired:
        differences = np.sort(first - second)
        error = 0.0 if constant(differences, scale) else float(differences.std(ddof=1) / np.sqrt(first.size))
        return error, first.size - 1
    if constant(first, scale) and constant(second, scale):
        return 0.0, float("nan")
    part_a, part_b = first.var(ddof=1) / first.size, second.var(ddof=1) / second.size
    df = (part_a + part_b) ** 2 / (part_a**2 / (first.size - 1) + part_b**2 / (second.size - 1))
    return float(np.sqrt(part_a + part_b)), float(df)


def _difference_of_means(x: Array, y: Array, axis: int = -1) -> Any:
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)
