"""The interquartile mean over runs and tasks, as rliable gives it (Agarwal et al., NeurIPS 2021)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from waterjar.errors import WaterjarError
from waterjar.stats.intervals import Interval
from waterjar.stats.samples import Array, Rng, check_between

_CHUNK = 2_000_000  # resampled numbers held at once


def interquartile_mean(
    scores: npt.ArrayLike, *, confidence: float = 0.95, n_resamples: int = 9999, rng: Rng = 0
) -> Interval:
    """Give the mean of the middle half of all scores, with a bootstrap stratified by task.

    Parameters
    ----------
    scores:
        Shape (run, task), on a scale that makes tasks comparable. NaN is a missing run, left out
        of its task and counted.

    Each resample draws, within every task by itself, as many runs as that task has; the bounds are percentiles
    of the resampled interquartile means ("Deep Reinforcement Learning at the Edge of the Statistical
    Precipice"). `n` is the number of runs of the task that has fewest.

    >>> interval = interquartile_mean([[0.1, 0.5], [0.2, 0.6], [0.3, 0.7], [0.9, 0.8]])
    >>> round(interval.estimate, 4)
    0.525
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    table = np.array(scores, dtype=np.float64)
    if table.ndim != 2:
        raise WaterjarError(f"scores has shape {table.shape}: (run, task) is needed")
    strata = [np.sort(column[~np.isnan(column)]) for column in table.T]
    sizes = [stratum.size for stratum in strata]
    n_missing = int(table.size - sum(sizes))
    n = min(sizes, default=0)
    nan = float("nan")
    if n == 0:
        empty = ", ".join(str(task) for task, size in enumerate(sizes) if size == 0) or "all"
        reason = f"no run observed in task {empty}: the mean over tasks would be one over others"
        return Interval(nan, nan, nan, n, n_missing, "iqm_stratified_percentile", confidence, reason)
    pooled = np.concatenate(strata)
    if not np.isfinite(pooled).all():
        return Interval(
            nan, nan, nan, n, n_missing, "iqm_stratified_percentile", confidence, "scores: some values are infinite"
        )
    estimate = float(scipy.stats.trim_mean(pooled, 0.25))
    if max(sizes) == 1:
        reason = "one run per task: nothing to resample"
        return Interval(estimate, nan, nan, n, n_missing, "iqm_stratified_percentile", confidence, reason)
    draws = _resampled(strata, n_resamples, np.random.default_rng(rng))
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    note = "" if n >= 10 else f"{n} runs in the smallest task: a bootstrap of so few is shorter than its level says"
    return Interval(estimate, float(low), float(high), n, n_missing, "iqm_stratified_percentile", confidence, note=note)


def _resampled(strata: list[Array], n_resamples: int, generator: np.random.Generator) -> Array:
    """Draw interquartile means, shape (resample,)."""
    total = sum(stratum.size for stratum in strata)
    step = max(1, _CHUNK // total)
    means = []
    for start in range(0, n_resamples, step):
        count = min(step, n_resamples - start)
        drawn = [stratum[generator.integers(0, stratum.size, (count, stratum.size))] for stratum in strata]
        means.append(scipy.stats.trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=1))
    return np.concatenate(means)
