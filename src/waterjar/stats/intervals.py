"""The mean over seeds and how far it can be trusted.

Measured coverage of a nominal 95 % interval for the mean, 5,000 simulated studies each (tests/stats/test_coverage.py):

| seeds | data        | t      | BCa as published | BCa with expanded levels |
|-------|-------------|--------|------------------|--------------------------|
| 3     | normal      | 94.9 % | -                | -                        |
| 5     | normal      | 95.7 % | -                | -                        |
| 10    | normal      | 95.4 % | 89.7 %           | 94.0 %                   |
| 20    | normal      | 95.5 % | 92.3 %           | 94.4 %                   |
| 50    | normal      | -      | 93.9 %           | 94.7 %                   |
| 10    | exponential | 90.0 % | 88.3 %           | 92.8 %                   |
| 20    | exponential | 91.0 % | 91.1 %           | 93.3 %                   |

So `bca` here is BCa with expanded levels and nothing else; see `bca_bounds`. It pays where data are skewed.

A value that cannot leave a range (an accuracy, a time) has its t interval on a scale on which the range has no end; see
`ranged_bounds`, and docs/diagnostics.md for what it covers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.samples import Array, Rng, check_between, constant, observed, why_undefined

BCA_FROM = 10
METHODS = ("t", "bca", "auto")
UNBOUNDED = (-np.inf, np.inf)
INTERVALS = {
    "t": "t interval",
    "t_logit": "t interval on the logit scale",
    "t_log": "t interval on the log scale",
    "bca_expanded": "BCa bootstrap interval",
}
"""Every way to bound a mean, in words."""


@dataclass(frozen=True)
class Interval:
    """An estimate between two bounds. `reason` says why a number is NaN, `note` what to know about one that is not."""

    estimate: float
    low: float
    high: float
    n: int
    n_missing: int
    method: str
    confidence: float
    reason: str = ""
    note: str = ""

    def __float__(self) -> float:
        return self.estimate

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """A metric over seeds, under the export keys of the seed document; std has ddof 1."""

    mean: float
    std: float
    min: float
    max: float
    n_seeds: int
    confidence_interval: tuple[float, float]
    n_missing: int
    method: str
    confidence: float
    reason: str = ""
    note: str = ""

    def __float__(self) -> float:
        return self.mean

    def as_row(self) -> dict[str, Any]:
        """Return the fields as one row of a table; `confidence_interval` stays a pair."""
        return asdict(self)


def mean_interval(
    values: npt.ArrayLike,
    *,
    method: str = "t",
    confidence: float = 0.95,
    within: tuple[float, float] = UNBOUNDED,
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> Interval:
    """Give the mean over seeds with a two-sided interval.

    Parameters
    ----------
    values:
        One number per seed, shape (seed,). NaN is a missing seed: left out and counted in `n_missing`.
    method:
        `t`: mean ± t(n-1) · s/√n. `bca`: see `bca_bounds`; an error below 10 seeds, where resamples of so few
        values cannot show the tails. `auto`: t below 10 seeds, bca from there.
    within:
        The range that no value can leave. The t interval then stays inside of it: see `ranged_bounds`. Values that
        lie outside say that the range is not theirs; the interval is the plain t then, and a note tells it.
    n_resamples, rng:
        Of the bootstrap only.

    >>> interval = mean_interval([0.71, 0.74, 0.68])
    >>> print(f"{interval.estimate:.2f} [{interval.low:.3f}, {interval.high:.3f}]")
    0.71 [0.635, 0.785]
    >>> interval = mean_interval([0.99, 0.94, 0.98], within=(0.0, 1.0))
    >>> print(f"{interval.estimate:.2f} [{interval.low:.3f}, {interval.high:.3f}], {interval.method}")
    0.97 [0.823, 0.996], t_logit
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    check_range(within)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    kept, n_missing = observed(values)
    n = kept.size
    chosen = method if method != "auto" else ("bca" if n >= BCA_FROM else "t")
    if chosen == "bca" and n < BCA_FROM:
        raise WaterjarError(
            f"method='bca' needs at least {BCA_FROM} seeds and {n} are observed: resamples of fewer values miss the "
            "tails, and the interval comes out too short. Take method='t', or 'auto'"
        )
    finite = n > 0 and bool(np.isfinite(kept).all())
    outside = int(beyond(kept, within).sum()) if finite else 0
    name = "bca_expanded" if chosen == "bca" else "t" if outside else scale_of(within)
    note = f"{outside} of {n} values lie outside of [{within[0]:g}, {within[1]:g}]" if outside else ""
    estimate = float(kept.mean()) if finite else float("nan")
    reason = why_undefined(kept, 2)
    if reason:
        return Interval(estimate, float("nan"), float("nan"), n, n_missing, name, confidence, reason, note)
    if constant(kept if outside else np.clip(kept, *within)):
        equal = f"all {n} values are equal: the interval has no width, which does not show that there is no spread"
        told = "; ".join(text for text in (equal, note) if text)
        return Interval(estimate, estimate, estimate, n, n_missing, name, confidence, note=told)
    if chosen == "bca":
        bounds = bca_bounds(kept, confidence, n_resamples, rng)
    else:
        bounds = ranged_bounds(kept, confidence, within)
    return Interval(estimate, float(bounds[0]), float(bounds[1]), n, n_missing, name, confidence, note=note)


def summarise(values: npt.ArrayLike, **settings: Any) -> Summary:
    """Summarise a metric over seeds; `settings` are those of `mean_interval`.

    >>> summary = summarise([1.0, 2.0, 3.0, float("nan")])
    >>> summary.mean, summary.std, summary.n_seeds, summary.n_missing
    (2.0, 1.0, 3, 1)
    """
    interval = mean_interval(values, **settings)
    kept, _ = observed(values)
    spread = float(kept.std(ddof=1)) if kept.size > 1 and np.isfinite(kept).all() else float("nan")
    return Summary(
        mean=interval.estimate,
        std=spread,
        min=float(kept.min()) if kept.size else float("nan"),
        max=float(kept.max()) if kept.size else float("nan"),
        n_seeds=interval.n,
        confidence_interval=(interval.low, interval.high),
        n_missing=interval.n_missing,
        method=interval.method,
        confidence=interval.confidence,
        reason=interval.reason,
        note=interval.note,
    )


def t_bounds(samples: Array, confidence: float) -> tuple[Array, Array]:
    """Bound the mean by Student's t along the last axis: shapes (..., seed) -> (...), (...)."""
    half, mean = _half_width(samples, confidence), samples.mean(axis=-1)
    return mean - half, mean + half


def _half_width(samples: Array, confidence: float) -> Array:
    """t(n-1) · s/√n along the last axis."""
    n = samples.shape[-1]
    with np.errstate(invalid="ignore"):  # what is infinite has no spread
        spread = samples.std(axis=-1, ddof=1)
    return np.asarray(-special.stdtrit(n - 1, (1 - confidence) / 2) * spread / np.sqrt(n))


def scale_of(within: tuple[float, float]) -> str:
    """The name of the t interval of values that cannot leave a range.

    >>> scale_of((0.0, 1.0)), scale_of((0.0, np.inf)), scale_of((-np.inf, np.inf))
    ('t_logit', 't_log', 't')
    """
    return {0: "t", 1: "t_log", 2: "t_logit"}[int(np.isfinite(within).sum())]


def ranged_bounds(samples: Array, confidence: float, within: tuple[float, float]) -> tuple[Array, Array]:
    """Bound the mean of values that cannot leave [a, b], along the last axis: shapes (..., seed) -> (...), (...).

    The mean mu keeps every value it could have had by the score test (m - mu)^2 <= e^2 V(mu)/V(m), with e the half
    width of the t interval and a variance that vanishes at the ends of the range: V(mu) = (mu - a)(b - mu), or
    mu - a where b is infinite. This is Wilson's interval of a proportion (1927) with t for z and the spread
    estimated, not given (the quasi-score of McCullagh & Nelder 1989, ch. 9). Solved, it is the delta-method interval
    of the mean on the logit (or log) scale, with 2 asinh(c/2) in the place of c = e/V(m) (times b - a):

        logit(m) ± 2 asinh(c/2),   log(m - a) ± 2 asinh(c/2)

    Only the mean is transformed, never a value, so that values at the very ends are as good as any, and the interval
    is one of the mean: that of transformed values is not, and covers ever less the more seeds there are. It lies
    strictly inside the range as soon as values differ. Without a finite end, or where a value lies beyond one, it is
    the t interval.
    """
    low, high = within
    lower, upper = np.isfinite(within)
    plain = t_bounds(samples, confidence)
    if not lower and not upper:
        return plain
    half = _half_width(samples, confidence)
    inside = np.clip(samples, low, high)  # what lies beyond by more than rounding has the plain interval
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a mean at an end has no width; see below
        above, below = (inside - low).mean(axis=-1), (high - inside).mean(axis=-1)
        steps = (half / above if lower else 0.0) + (half / below if upper else 0.0)
        odds = np.exp(2 * np.arcsinh(steps / 2))
        if not upper:
            bounds = low + above / odds, low + above * odds
        elif not lower:
            bounds = high - below * odds, high - below / odds
        else:
            shares = [above / (above + below * odds), above * odds / (above * odds + below)]
            rests = [below * odds / (above + below * odds), below / (above * odds + below)]
            width, near = high - low, above < below  # from the nearer end, whose digits count
            bounds = tuple(
                np.where(near, low + width * share, high - width * rest)
                for share, rest in zip(shares, rests, strict=True)
            )
    as_t = beyond(samples, within).any(axis=-1) | ~((half > 0) & (above > 0) & (below > 0))
    return np.where(as_t, plain[0], bounds[0]), np.where(as_t, plain[1], bounds[1])


def beyond(values: Array, within: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Whether a value lies outside of a range by more than single precision rounds, 1e-6 of its finite ends' size."""
    slack = [1e-6 * max(1.0, abs(end)) if np.isfinite(end) else 0.0 for end in within]
    return np.asarray((values < within[0] - slack[0]) | (values > within[1] + slack[1]))


def check_range(within: tuple[float, float]) -> None:
    """Refuse a range that is none: two numbers, the first below the second; either may be infinite."""
    if len(within) != 2 or not within[0] < within[1]:
        raise WaterjarError(f"within={within!r}: expected the ends of a range, the lower one first, such as (0, 1)")


def bca_bounds(samples: Array, confidence: float, n_resamples: int, rng: Rng) -> tuple[Array, Array]:
    """Bound the mean by the BCa bootstrap with expanded levels, along the last axis: (..., seed) -> (...), (...).

    BCa (Efron 1987) takes the spread of resample means, which is that of ddof 0, and normal quantiles where few
    seeds ask for those of t. Both make it short: 89.7 % at ten normal seeds instead of 95 %. Hesterberg ("What
    teachers should know about the bootstrap", The American Statistician 69, 2015, on expanded percentile intervals)
    mends both at once by asking for the level alpha' with Phi^-1(alpha'/2) = sqrt(n/(n-1)) t_(n-1)^-1(alpha/2);
    that level is handed to scipy's BCa.
    """
    return bootstrap_bounds(samples, confidence, n_resamples, rng, method="BCa")


def bootstrap_bounds(samples: Array, confidence: float, n_resamples: int, rng: Rng, method: str) -> tuple[Array, Array]:
    """Bound the mean by `scipy.stats.bootstrap` (`percentile` or `BCa`) at the level expanded for n."""
    result = scipy.stats.bootstrap(
        (samples,),
        np.mean,
        axis=-1,
        vectorized=True,
        n_resamples=n_resamples,
        batch=max(1, 2_000_000 // samples.size),
        confidence_level=expanded_confidence(confidence, samples.shape[-1]),
        method=method,
        rng=np.random.default_rng(rng),
    )
    return result.confidence_interval.low, result.confidence_interval.high


def expanded_confidence(confidence: float, n: int) -> float:
    """Return the level to ask of a bootstrap of n values so that it behaves like `confidence` (Hesterberg 2015).

    >>> round(expanded_confidence(0.95, 10), 4), round(expanded_confidence(0.95, 1000), 4)
    (0.9829, 0.9504)
    """
    quantile = np.sqrt(n / (n - 1)) * -special.stdtrit(n - 1, (1 - confidence) / 2)
    return float(1 - 2 * special.ndtr(-quantile))
