"""Intervals over samples: they speak of THIS network on other samples; the spread over seeds speaks of the method.

Coverage of a nominal 95 % interval of the emergence ratio (tests/diagnose/collective/test_coverage.py), of 100 and of
1,000 samples, of three streams or five that are equally good and of streams that differ: 92 - 95 % where the best
stream was chosen on other data, 94 - 99 % where it is chosen in each resample, on the samples that this left out. Had
it been chosen on the same samples that score it, coverage would fall to 53 - 85 % where streams are equally good, since
the best of equals looks better than it is. Shapley values: 92 - 98 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from waterjar.diagnose.result import NOT_A_NUMBER, Floats, Result
from waterjar.stats.shares import share_interval

_BLOCK = 2**24
"""Numbers that are held at a time."""


def resampled_accuracies(
    collective_right: ArrayLike, stream_right: ArrayLike, best: int | None, *, resamples: int, seed: int
) -> Floats:
    """(resample, 2): accuracy of the collective and of the best stream in bootstrap resamples of the samples.

    Where `best` is None, the best stream is chosen anew in each resample, on the samples that it left out; of equally
    good ones the mean counts.

    Parameters
    ----------
    collective_right : (sample,), 1 or 0. stream_right : (sample, stream).

    >>> resampled_accuracies([1, 1, 1], [[1, 0], [1, 0], [1, 0]], 1, resamples=2, seed=0)
    array([[1., 0.],
           [1., 0.]])
    """
    one, streams = np.asarray(collective_right, np.float64), np.asarray(stream_right, np.float64)
    n = len(one)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    if best is not None:  # samples with the same answers are alike: draw how often each kind comes
        kinds, counts = np.unique(np.stack([one, streams[:, best]], 1), axis=0, return_counts=True)
        found: Floats = rng.multinomial(n, counts / n, size=resamples) @ kinds / n
        return found
    both = np.column_stack([one, streams])
    parts = []
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        sums, left = times @ both, (times == 0) @ streams
        chosen = left == left.max(1, keepdims=True)
        parts.append(np.stack([sums[:, 0], (sums[:, 1:] * chosen).sum(1) / chosen.sum(1)], 1))
    return np.concatenate(parts) / n


def percentile_bounds(values: Floats, estimate: float, confidence: float) -> tuple[float, float]:
    """The middle `confidence` of resampled values, and the estimate in any case.

    A resample without a value (0 / 0) may be anything: it counts as the lowest, and as the highest.

    >>> percentile_bounds(np.arange(101.0), 50.0, 0.9)
    (5.0, 95.0)
    """
    tail = (1 - confidence) / 2
    low = np.quantile(np.where(np.isnan(values), -np.inf, values), tail, method="inverted_cdf")
    high = np.quantile(np.where(np.isnan(values), np.inf, values), 1 - tail, method="inverted_cdf")
    return min(float(low), estimate), max(float(high), estimate)


def stream_bounds(right: Floats, confidence: float) -> tuple[Result, Result]:
    """(stream,) each: Wilson's bounds over samples of the accuracy of streams (sample, stream); NaN of one with NaN.

    >>> [bound.value.round(3).tolist() for bound in stream_bounds(np.array([[1.0, 0.0], [1.0, np.nan]]), 0.95)]
    [[0.342, nan], [1.0, nan]]
    """
    n = len(right)
    _, low, high = share_interval(right.sum(0), n, confidence=confidence)
    return Result.of(low, NOT_A_NUMBER, n=n), Result.of(high, NOT_A_NUMBER, n=n)


def mean_bounds(values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The t interval of the mean over the first axis, sample; NaN of one sample, and of values that are infinite.

    >>> low, high = mean_bounds(np.array([0.0, 1.0, 2.0]), 0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (-1.484, 3.484)
    """
    n = len(values)
    with np.errstate(invalid="ignore"):
        mean = values.mean(0)
    if n < 2:
        nothing: Floats = np.full(np.shape(mean), np.nan)
        return nothing, nothing
    with np.errstate(invalid="ignore"):
        half = -special.stdtrit(n - 1, (1 - confidence) / 2) * values.std(0, ddof=1) / np.sqrt(n)
        return np.asarray(mean - half), np.asarray(mean + half)
