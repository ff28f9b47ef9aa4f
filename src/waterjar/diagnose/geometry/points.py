"""Points of manifolds: sorted by label, as unit vectors and lengths, with their inner products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.geometry.inputs import real_points, sortable_labels
from waterjar.diagnose.geometry.solver.points import LONG, SHORT, runs_of, unit_vectors
from waterjar.diagnose.geometry.workspace import room
from waterjar.errors import WaterjarError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GRAM_POINTS = 8192
"""With more points, products are taken when needed: the Gram matrix would fill the memory."""
_CENTRED_ROUNDING = 1e-15  # of the largest entries: a centred point that is shorter is zero
_SHORTEST = 1e-140  # beside the longest point a shorter one cannot be told from this


@dataclass(frozen=True)
class Manifolds:
    """Points sorted by manifold, as unit vectors and lengths."""

    units: Floats
    """(point, dimension); a zero point stays zero. All NaN if a number that was given is not finite."""
    norms: Floats
    """(point)"""
    owner: Integers
    """(point) the manifold it belongs to"""
    offsets: Integers
    """(manifold + 1) where its points begin"""
    order: Integers
    """(point) its row in the array that was given"""
    names: NDArray[np.generic]
    """(manifold) its label"""
    points: Floats
    """(point, dimension) what the unit vectors are of: as they were given or centred, not rounded any further"""
    recorded: Floats
    """(point, dimension) as they were given"""
    exponent: int = 0
    """lengths are norms * 2**exponent: 0 unless their squares could not be written as float64"""
    centred: bool = False
    """whether the mean of all points was removed"""

    @property
    def count(self) -> int:
        """How many manifolds there are."""
        return len(self.names)

    @property
    def sizes(self) -> Integers:
        """(manifold) number of points"""
        return np.diff(self.offsets)

    @cached_property
    def gram(self) -> Floats | None:
        """(point, point) u . u, if there is room for it"""
        points = len(self.units)
        if points > GRAM_POINTS:
            return None
        product: Floats = np.matmul(self.units, self.units.T, out=room((points, points)))
        return product

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """(dimension) whether any point is not zero there: no other dimension has a part in a projection"""
        return np.asarray(self.units.any(axis=0))

    @cached_property
    def nonzero(self) -> Floats:
        """(point, dimension) the unit vectors in the dimensions that are alive"""
        return self.units if self.alive.all() else np.ascontiguousarray(self.units[:, self.alive])


def manifolds(points: ArrayLike, labels: ArrayLike, *, center: bool = False) -> Manifolds:
    """Sort points (point, dimension) by labels (point); center=True removes their mean first.

    A centred point whose length is rounding of what was subtracted is zero.
    """
    given, names = real_points(points), sortable_labels(labels)
    if given.ndim != 2 or names.shape != given.shape[:1]:
        raise WaterjarError(
            f"points of shape {given.shape} and labels of shape {names.shape}: they must be (point, dimension) and "
            "(point,)"
        )
    if given.size == 0:
        raise WaterjarError(f"points of shape {given.shape} are empty: there is no manifold")
    x, order, codes = given, np.arange(len(names)), names
    if names.dtype != np.int64:
        codes = np.unique(names, return_inverse=True)[1]
    owner, begins = np.empty(len(names), np.int64), np.empty(len(names) + 1, np.int64)
    count = runs_of(np.ascontiguousarray(codes), owner, begins)
    if count == 0:
        order = np.argsort(codes, kind="stable")
        x, names = given[order], names[order]
        count = runs_of(codes[order], owner, begins)
    offsets = begins[: count + 1]
    units, norms, used, exponent = with_lengths(x, center=center)
    return Manifolds(units, norms, owner, offsets, order, names[offsets[:-1]], used, x, exponent, center)


def with_lengths(x: Floats, *, center: bool = False) -> tuple[Floats, Floats, Floats, int]:
    """Unit vectors, lengths, what they are of, and the power of two that the lengths are divided by."""
    if not center:
        units, norms = room(x.shape), np.empty(len(x))
        if unit_vectors(np.ascontiguousarray(x), units, norms):
            return units, norms, x, 0
    if not np.isfinite(x).all():
        return np.full(x.shape, np.nan), np.full(len(x), np.nan), x, 0
    peak = float(np.abs(x).max())
    exponent = int(np.frexp(peak)[1]) if peak > 0 and not SHORT < peak < LONG else 0
    down = exponent  # what lengths are still to be divided by
    if center:
        x, down = np.ldexp(x, -exponent), 0
        most = np.abs(x).max(axis=0)
        x = x - x.mean(axis=0)
        x = x - x.mean(axis=0)  # what rounding left of the mean
        x[np.sqrt(np.vecdot(x, x)) <= _CENTRED_ROUNDING * np.sqrt(most @ most)] = 0.0
    powers = np.frexp(np.abs(x).max(axis=1))[1]
    rows = np.ldexp(x, -powers[:, None])  # squares of tiny numbers would be lost
    lengths = np.sqrt(np.vecdot(rows, rows))
    units = np.divide(rows, lengths[:, None], out=np.zeros_like(x), where=lengths[:, None] > 0)
    norms = np.where(lengths > 0, np.maximum(np.ldexp(lengths, powers - down), _SHORTEST), 0.0)
    return units, norms, x, exponent


def in_own_order(of: Manifolds) -> tuple[Manifolds, Integers, Integers]:
    """The same points in an order that only their numbers decide (that of their bytes), and where they are in `of`.

    Manifolds have such an order, too.

    >>> one, rows, classes = in_own_order(manifolds([[2.0], [1.0], [4.0], [3.0]], [1, 1, 0, 0]))
    >>> one.points.ravel(), rows, classes
    (array([2., 1., 3., 4.]), array([2, 3, 1, 0]), array([1, 0]))
    """
    numbers = [row.tobytes() for row in of.points + 0.0]  # -0 is 0
    sets = [sorted(range(a, b), key=numbers.__getitem__) for a, b in pairwise(of.offsets.tolist())]
    classes = np.array(sorted(range(of.count), key=lambda m: [numbers[i] for i in sets[m]]))
    rows, sizes = np.concatenate([np.array(sets[m]) for m in classes]), of.sizes[classes]
    given = {name: getattr(of, name)[rows] for name in ("units", "norms", "order", "points", "recorded")}
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(of.count), sizes)
    return replace(of, owner=owner, offsets=offsets, names=of.names[classes], **given), rows, classes
