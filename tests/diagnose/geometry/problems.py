"""Labelled points as networks make them, and as they should not: what the geometry tests share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

KINDS = (
    "gaussian",
    "relu",
    "duplicates",
    "shared points",
    "zero rows",
    "dead units",
    "rank one",
    "collapsed",
    "low dimensional",
    "unequal lengths",
    "more manifolds than dimensions",
    "one point each",
    "float32 collapsed",
    "collapsed together",
)


@dataclass(frozen=True)
class Case:
    kind: str
    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    t: NDArray[np.float64]
    y: NDArray[np.float64]

    @property
    def signed(self) -> NDArray[np.float64]:
        """(draw, point, dimension) y x"""
        names = np.unique(self.labels)
        return self.y[:, np.searchsorted(names, self.labels), None] * self.points


def case(seed: int, draws: int = 1, kind: str | None = None) -> Case:
    """A random problem: P from 2 to 60 manifolds of unequal sizes; every kind in turn unless one is named."""
    rng = np.random.default_rng([seed, 4])
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    manifolds = int(rng.integers(2, 61)) if seed % 5 == 0 else int(rng.integers(2, 8))
    dimension = int(rng.integers(4, 40))
    if kind == "more manifolds than dimensions":
        manifolds, dimension = int(rng.integers(10, 61)), int(rng.integers(2, 9))
    sizes = np.ones(manifolds, int) if kind == "one point each" else rng.integers(1, 13, manifolds)
    labels = np.repeat(np.arange(manifolds), sizes)
    centers = rng.standard_normal((manifolds, dimension))
    points = centers[labels] + rng.standard_normal((len(labels), dimension))
    if kind in ("relu", "dead units"):
        points = np.maximum(points, 0)
    if kind == "duplicates":
        points = points[rng.integers(0, len(points), len(points))]
        points[labels == 0] = points[np.flatnonzero(labels == 0)[0]]
    elif kind == "shared points":  # of different manifolds
        points[::2] = points[0]
    elif kind == "zero rows":
        points[rng.random(len(points)) < 0.3] = 0
    elif kind == "dead units":
        points[:, rng.random(dimension) < 0.6] = 0
    elif kind == "rank one":
        points = rng.standard_normal((len(labels), 1)) * rng.standard_normal(dimension)
    elif kind == "collapsed":
        points = centers[labels] + 10.0 ** -rng.integers(2, 13) * rng.standard_normal(points.shape)
    elif kind == "low dimensional":
        frames = rng.standard_normal((manifolds, 2, dimension))
        points = centers[labels] + np.einsum("nk,nkd->nd", rng.standard_normal((len(labels), 2)), frames[labels])
    elif kind == "unequal lengths":
        points *= 10.0 ** rng.uniform(-6, 6, (len(labels), 1))
    elif kind == "float32 collapsed":
        points = (centers[labels] + 1e-6 * points).astype(np.float32).astype(np.float64)
    elif kind == "collapsed together":  # whether they are separable hangs on the fourth digit
        points = centers[0] + 1e-4 * points
    order = rng.permutation(len(labels))
    t = rng.standard_normal((draws, dimension)) * 10.0 ** rng.integers(-3, 4)
    y = rng.choice([-1.0, 1.0], (draws, manifolds))
    return Case(kind, points[order], labels[order], t, y)


def kkt(case: Case, lam: NDArray[np.float64]) -> NDArray[np.float64]:
    """(draw) the scaled violation of the KKT conditions, from the points themselves and no Gram matrix."""
    p = np.einsum("qn,qnd->qd", lam, case.signed)
    norms = np.linalg.norm(case.points, axis=1)
    scale = np.where(norms > 0, norms, 1.0) * np.linalg.norm(case.t, axis=1, keepdims=True)
    g = np.einsum("qnd,qd->qn", case.signed, case.t - p) / scale
    return np.where(lam > 0, np.abs(g), np.maximum(g, 0)).max(axis=1)


def unique(case: Case, lam: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(draw) whether lam is the only solution: all points with y x . (t - p) = 0 are independent, beyond rounding."""
    p = np.einsum("qn,qnd->qd", lam, case.signed)
    norms = np.linalg.norm(case.points, axis=1)
    units = case.points / np.where(norms > 0, norms, 1.0)[:, None]
    tight = np.abs((case.t - p) @ units.T) <= 1e-9 * np.linalg.norm(case.t, axis=1, keepdims=True)
    tight[:, norms == 0] = False
    smallest = [np.linalg.svd(units[row] @ units[row].T, compute_uv=False)[-1] if row.any() else 1.0 for row in tight]
    return np.array(smallest) > 1e-10


@dataclass(frozen=True)
class Exact:
    lam: NDArray[np.float64]
    """(member) rounded, but for its sign"""
    p: NDArray[np.float64]
    """(dimension) rounded"""
    gain: float
    """the largest x . (t - p) of points outside the support, rounded, but for its sign"""


def projected_exactly(signed: NDArray[np.float64], t: NDArray[np.float64], support: NDArray[np.int64]) -> Exact:
    """T on the span of the support (of rows y x), in rational numbers: normal equations by Gauss and Jordan."""
    rows = [[Fraction(value) for value in row] for row in signed.tolist()]
    target, members = [Fraction(value) for value in t.tolist()], [rows[i] for i in support.tolist()]
    system = [[_dot(a, b) for b in members] + [_dot(a, target)] for a in members]
    for k in range(len(system)):
        system[k] = [value / system[k][k] for value in system[k]]
        for other in range(len(system)):
            if other != k:
                factor = system[other][k]
                system[other] = [a - factor * b for a, b in zip(system[other], system[k], strict=True)]
    lam = [row[-1] for row in system]
    p = [sum((f * row[d] for f, row in zip(lam, members, strict=True)), Fraction(0)) for d in range(len(target))]
    rest = [a - b for a, b in zip(target, p, strict=True)]
    gains = [_dot(row, rest) for i, row in enumerate(rows) if i not in set(support.tolist())]
    return Exact(np.array([float(x) for x in lam]), np.array([float(x) for x in p]), float(max(gains, default=-1)))


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
