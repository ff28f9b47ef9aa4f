"""The interval of a mean inside a range by other algebra than the package's: roots of the score equation."""

from __future__ import annotations

import numpy as np
from scipy import stats


def score_interval(values: np.ndarray, within: tuple[float, float], confidence: float = 0.95) -> np.ndarray:
    """Of values (repeat, ...) the roots mu of (m - mu)² V(m) = e² V(mu), low and high: shape (2, ...).

    V(mu) = (mu - a)(b - mu), or mu - a without an upper end: a quadratic in mu. e is scipy's half width of t.
    """
    a, b = within
    m = values.mean(0)
    if not np.isfinite(within).any():
        return np.array(stats.t.interval(confidence, len(values) - 1, m, stats.sem(values, axis=0)))
    flat = np.asarray(stats.sem(values, axis=0) < 1e-12)
    if flat.any():  # no spread, no width
        made = np.array([m, m])
        made[:, ~flat] = score_interval(values[:, ~flat], within, confidence)
        return made
    e = stats.t.isf((1 - confidence) / 2, len(values) - 1) * stats.sem(values, axis=0)
    if np.isinf(b):
        k = e**2 / (m - a)
        square, line, rest = np.ones_like(k), -(2 * m + k), m**2 + k * a
    else:
        k = e**2 / ((m - a) * (b - m))
        square, line, rest = 1 + k, -(2 * m + k * (a + b)), m**2 + k * a * b
    root = np.sqrt(line**2 - 4 * square * rest)
    return np.array([(-line - root) / (2 * square), (-line + root) / (2 * square)])
