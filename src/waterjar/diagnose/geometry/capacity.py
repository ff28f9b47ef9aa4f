"""Manifold capacity by simulation: in how few random dimensions the manifolds are still linearly separable.

    capacity = P / n*,   p_{n*} = 1/2,   p_n = probability that a random projection to n dimensions is separable

(Chou, Le, Wang and Chung 2025, definition 2.1 and algorithm 1). A trial draws ONE projection and ONE dichotomy, and
uses the first n columns of the projection: separability is then monotone in n, each trial has a critical n, and all of
p_n comes from these. A scale of the projection could not matter, and there is none.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.geometry.cone import in_parts
from waterjar.diagnose.geometry.draws import Dichotomies, projection_generator
from waterjar.diagnose.geometry.draws import dichotomies as draw_dichotomies
from waterjar.diagnose.geometry.inputs import Rng, at_least, checked_rng
from waterjar.diagnose.geometry.points import Floats, Integers, Manifolds, manifolds
from waterjar.diagnose.geometry.rounding import in_words, without_rounding
from waterjar.diagnose.geometry.solver.separation import smallest_separable
from waterjar.diagnose.result import Result
from waterjar.run.schema import REASONS

_Z = 1.959963984540054  # 97.5 % quantile of the normal distribution
_APART = 2**64  # steps of the generator between trials: none uses so many
_BLOCK = 2**21  # numbers that trials may hold at a time


class SimulatedCapacity(TypedDict):
    """What the trials found: numbers with their reasons, over `n_trials`."""

    capacity: Result
    """P / n_star"""
    capacity_low: Result
    capacity_high: Result
    """95 % interval over trials"""
    n_star: Result
    """where p_n, linearly interpolated, crosses 1/2"""
    n_star_low: Result
    n_star_high: Result
    """where its 95 % band does; undefined where the band does not cross up to N"""
    n: NDArray[np.int64]
    """(n) 1 ... N"""
    p_n: Result
    p_n_low: Result
    p_n_high: Result
    """(n) share of separable trials, and its Wilson interval (95 %)"""
    critical: NDArray[np.int64]
    """(trial) smallest separable n; N + 1 where there is none: censored"""
    censored_share: Result
    n_trials: int
    bias: bool
    center: bool
    dichotomies: str


def simulated_capacity(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    n_trials: int = 100,
    rng: Rng = 0,
    bias: bool = False,
    dichotomies: Dichotomies = "uniform",
    center: bool = False,
    workers: int = 1,
) -> SimulatedCapacity:
    """Capacity of the manifolds that labels (point) make of points (point, unit), by simulation.

    bias=True also allows a threshold; lengths of points then matter, without it they do not. For the same `rng` the
    dichotomies are those of `manifold_geometry`. Points that a hyperplane separates by less than 1e-8 of their length
    (with bias: of the largest distance from their mean) count as inseparable, as does a zero point without bias.

    >>> rng = np.random.default_rng(0)
    >>> found = simulated_capacity(rng.standard_normal((40, 60)), np.arange(40), n_trials=200)
    >>> low, high = float(found["n_star_low"]), float(found["n_star_high"])
    >>> low < 20 < high  # Cover (1965): 2 n points are separable with probability 1/2
    True
    """
    n_trials = at_least("n_trials", n_trials, 1, "there must be at least one")
    checked_rng(rng)
    of, directions = without_rounding(manifolds(points, labels, center=center))
    kind = dichotomies if isinstance(dichotomies, str) else "given"
    dimension = of.units.shape[1]
    critical = np.full(n_trials, dimension + 1)
    reason, note = "present", ""
    if not np.isfinite(of.units).all():
        reason, note = "not_a_number", "the points have NaN or infinite values"
    elif of.count == 1:
        reason, note = "undefined", "there is one manifold only: nothing to separate"
    elif not bias and not of.norms.all():
        reason, note = "never_reached", "a point is zero, on no side of any hyperplane through the origin"
    else:
        y = draw_dichotomies(dichotomies, n_trials, of.count, rng)
        critical = critical_dimensions(of, y, rng, bias=bias, workers=workers)
        if 2 * (critical > dimension).sum() >= n_trials:
            reason, note = "never_reached", f"half of the trials or more are inseparable in all {dimension} dimensions"
    known = reason in ("present", "never_reached")
    n = np.arange(1, dimension + 1)
    p = (critical[:, None] <= n).mean(axis=0) if known else np.full(dimension, math.nan)
    middle = (p + _Z**2 / (2 * n_trials)) / (1 + _Z**2 / n_trials)
    half = np.sqrt(p * (1 - p) / n_trials + (_Z / (2 * n_trials)) ** 2) * _Z / (1 + _Z**2 / n_trials)
    upper, lower = np.maximum(middle + half, p), np.minimum(middle - half, p)  # at 0 and 1 they meet, up to rounding
    star, low, high = (_crossing(shares) for shares in (p, upper, lower))
    star = star if reason == "present" else math.nan
    why = "undefined" if reason == "present" else reason

    def told(value: float) -> Result:
        if math.isnan(value):
            return Result(value, why, n_trials, note=note)
        return Result(value, n=n_trials, note="; ".join(in_words(directions.dropped, directions.doubtful)))

    def curve(values: Floats) -> Result:
        return Result.of(values, REASONS.index(why), n=n_trials, note=note)

    return SimulatedCapacity(
        capacity=told(of.count / star),
        capacity_low=told(of.count / high),
        capacity_high=told(of.count / low),
        n_star=told(star),
        n_star_low=told(low),
        n_star_high=told(high),
        n=n,
        p_n=curve(p),
        p_n_low=curve(lower),
        p_n_high=curve(upper),
        critical=critical,
        censored_share=told(float((critical > dimension).mean()) if known else math.nan),
        n_trials=n_trials,
        bias=bias,
        center=center,
        dichotomies=kind,
    )


def critical_dimensions(of: Manifolds, y: Floats, rng: Rng, *, bias: bool = False, workers: int = 1) -> Integers:
    """Per trial with dichotomy y (trial, manifold), the smallest separable n, or N + 1."""
    points, trials = rotated(of, bias=bias), len(y)
    most = points.shape[1]
    found = np.empty(trials, np.int64)

    def run(rows: slice, first: int) -> None:
        width, low, at = min(first + first // 3 + 3, most), 0, np.arange(rows.start, rows.stop)
        normals = Normals(rng, most)
        drawn = normals.first(at, width)
        while True:
            z = (drawn.reshape(-1, most) @ points.T).reshape(*drawn.shape[:2], -1)
            n = np.empty(len(at), np.int64)
            smallest_separable(z, y[at], of.owner, of.offsets, bias, low, max(first, low + 1), n)
            found[at] = n
            at, width, low = at[n > width], min(2 * width, most), width
            if len(at) == 0 or low == most:
                # In more dimensions than the points span, a projection only turns them.
                found[at] = of.units.shape[1] + 1
                return
            drawn = normals.first(at, width)  # the same ones, and more

    # The first trials tell where the others should begin; they end where they end, wherever they begin.
    pilot = min(8, trials)
    run(slice(0, pilot), min(of.count, most))
    first = int(min(np.median(found[:pilot]), most))
    block = max(1, _BLOCK // (most * first + len(points) * first))

    def part(rows: slice) -> None:
        for start in range(pilot + rows.start, pilot + rows.stop, block):
            run(slice(start, min(start + block, pilot + rows.stop)), first)

    in_parts(trials - pilot, workers, part)
    return found


def rotated(of: Manifolds, *, bias: bool = False) -> Floats:
    """The points in coordinates (point, rank or dimension): a Gaussian projection does not see rotations.

    Without bias they are unit vectors: lengths cannot matter. With bias they do, and all points are divided by ONE
    number; what cannot matter then is their mean, which a threshold takes up: it is removed, and so is its rounding.
    """
    points = of.units
    if bias:
        points = of.units * (of.norms / max(float(of.norms.max()), 1e-300))[:, None]
        points = points - points.mean(axis=0)
        longest = float(np.sqrt(np.vecdot(points, points).max()))
        points = points / longest if longest > 0 else points
    if len(points) >= points.shape[1]:
        return points
    factor: Floats = np.asarray(np.linalg.qr(points.T, mode="r"))
    return np.ascontiguousarray(factor.T)


class Normals:
    """The rows of random projections; trials have streams far apart."""

    def __init__(self, rng: Rng, dimension: int) -> None:
        self._bits = projection_generator(rng)
        self._start = self._bits.state
        self._generator = np.random.Generator(self._bits)
        self._dimension = dimension

    def first(self, trials: Integers, count: int) -> Floats:
        """The first `count` rows of these trials (trial, row, dimension)."""
        rows = np.empty((len(trials), count, self._dimension))
        for place, trial in enumerate(trials.tolist()):
            self._bits.state = self._start
            self._bits.advance(trial * _APART)
            self._generator.standard_normal(out=rows[place])
        return rows


def _crossing(p: Floats) -> float:
    """Where a rising curve over 1 ... N, 0 at 0, interpolated, reaches 1/2; NaN if it does not."""
    above = np.flatnonzero(p >= 0.5)
    if len(above) == 0:
        return math.nan
    at = int(above[0])
    before = float(p[at - 1]) if at else 0.0
    return at + (0.5 - before) / (float(p[at]) - before)
