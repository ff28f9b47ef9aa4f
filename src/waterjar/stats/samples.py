"""What goes into a statistic: observed values, pairs of them, and the words for what is missing.

Observed values come out sorted. A statistic of seeds does not depend on their order, and sorting makes that true
to the last bit, also for the draws of a bootstrap.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from waterjar.errors import WaterjarError

Array = npt.NDArray[np.float64]
Rng = int | np.random.SeedSequence | np.random.Generator

# Values that differ by less than this many units in the last place differ by rounding, not by the seed.
MIN_PAIRS = 3
"""Pairs of seeds from which on a difference has an effect size, and may be called significant."""
_ROUNDING = 32 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Pairs:
    """Values of two groups joined by seed: `a[i]` and `b[i]` belong to `seeds[i]`; shapes (pair,)."""

    a: Array
    b: Array
    seeds: tuple[Hashable, ...]
    n_unmatched_a: int
    n_unmatched_b: int


def vector(values: npt.ArrayLike, what: str) -> Array:
    """Convert to a new float vector (seed,), or say what is wrong with the shape or the type."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"{what}: numbers are needed, one per seed ({error})") from error
    if array.ndim != 1:
        raise WaterjarError(f"{what} has shape {array.shape}: one number per seed is needed, shape (seed,)")
    return array


def observed(values: npt.ArrayLike, what: str = "values") -> tuple[Array, int]:
    """Split off missing values: (observed values in ascending order, number of NaN).

    >>> observed([3.0, float("nan"), 1.0])
    (array([1., 3.]), 1)
    """
    array = vector(values, what)
    kept = np.sort(array[~np.isnan(array)])
    return kept, array.size - kept.size


def observed_pairs(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array, int]:
    """Split off pairs with a NaN on either side: (a, b, number of pairs left out), shapes (pair,).

    >>> observed_pairs([3.0, 1.0, 2.0], [0.0, 5.0, float("nan")])
    (array([1., 3.]), array([5., 0.]), 1)
    """
    first, second = vector(a, "a"), vector(b, "b")
    if first.size != second.size:
        raise WaterjarError(
            f"a paired design needs one b for each a: {first.size} against {second.size} values. "
            "Join them with pair_by_seed, or compare with paired=False"
        )
    kept = ~(np.isnan(first) | np.isnan(second))
    first, second = first[kept], second[kept]
    order = np.lexsort((second, first))
    return first[order], second[order], int(kept.size - first.size)


def pair_by_seed(
    values_a: npt.ArrayLike, seeds_a: Iterable[Hashable], values_b: npt.ArrayLike, seeds_b: Iterable[Hashable]
) -> Pairs:
    """Join two groups by their seed labels, in the order of `seeds_a`; what has no partner is counted.

    >>> pair_by_seed([0.1, 0.2, 0.3], [1, 2, 3], [0.9, 0.8], [3, 1])
    Pairs(a=array([0.1, 0.3]), b=array([0.8, 0.9]), seeds=(1, 3), n_unmatched_a=1, n_unmatched_b=0)
    """
    first, second = vector(values_a, "values_a"), vector(values_b, "values_b")
    labels_a, labels_b = _labels(seeds_a, first.size, "a"), _labels(seeds_b, second.size, "b")
    place_b = {label: place for place, label in enumerate(labels_b)}
    joined = [(place, place_b[label]) for place, label in enumerate(labels_a) if label in place_b]
    rows_a = [place for place, _ in joined]
    rows_b = [place for _, place in joined]
    return Pairs(
        a=first[rows_a],
        b=second[rows_b],
        seeds=tuple(labels_a[place] for place in rows_a),
        n_unmatched_a=first.size - len(joined),
        n_unmatched_b=second.size - len(joined),
    )


def constant(values: Array, scale: float | None = None) -> bool:
    """Tell whether the values are equal up to rounding at `scale` (by default their own largest magnitude)."""
    if values.size == 0:
        return True
    magnitude = float(np.abs(values).max()) if scale is None else scale
    return float(np.ptp(values)) <= _ROUNDING * magnitude


def why_undefined(values: Array, at_least: int, name: str = "values") -> str:
    """Say why a statistic that needs `at_least` finite numbers has no answer here; '' when it has one."""
    if values.size < at_least:
        have = {0: "no value", 1: "one value"}.get(values.size, f"{values.size} values")
        return f"{name}: {have}, at least {at_least} are needed"
    if not np.isfinite(values).all():
        return f"{name}: {int((~np.isfinite(values)).sum())} of {values.size} values are infinite"
    return ""


def check_between(value: float, low: float, high: float, name: str) -> None:
    """Refuse a setting outside the open interval (low, high)."""
    if not low < value < high:
        raise WaterjarError(f"{name}={value} is impossible: it must lie between {low} and {high}")


def _labels(seeds: Iterable[Hashable], size: int, side: str) -> Sequence[Hashable]:
    labels = list(seeds)
    if len(labels) != size:
        raise WaterjarError(f"values_{side} has {size} values but seeds_{side} has {len(labels)} labels")
    twice = sorted({str(label) for label in labels if labels.count(label) > 1})
    if twice:
        raise WaterjarError(f"seeds_{side} names a seed twice: {', '.join(twice)}. A pair needs one value per seed")
    return labels
