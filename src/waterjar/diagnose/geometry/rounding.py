"""Points of low rank without what rounding added to it.

What a linear layer gives before its nonlinearity has the rank of what goes in. Recorded in float32, every number is
rounded, and the points leave their subspace by 1e-7 of their length: enough for a cone, which has no scale, to reach in
all directions. Projections are then those on the cone of the rounding, with coefficients of 1e7.

With unit vectors as rows, rounding is a random matrix E of rms size eps / sqrt(12) a row, so that

    |E| <= eps / sqrt(12) (1 + the longest column) =: one rounding

(Bandeira and van Handel 2016). A network that calculates in float32 adds that of its sums: about 0.4 sqrt(k) roundings
where the rank is k. Singular values below (2 + sqrt(k)) roundings, with a gap of GAP above them, are rounding: their
directions are left out, and no point moves further than rounding moved it. Where there is no such gap, noise cannot be
told from what is small: nothing is left out, and these directions are counted as doubtful.

Which format the numbers were rounded to is seen from their digits: all of them fit into float32 (24 bits), float16 (11)
or bfloat16 (8), and some need its last bit. It does not matter which type they have come in.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from waterjar.diagnose.geometry.points import Floats, Manifolds, with_lengths

FORMATS = {24: "float32", 11: "float16", 8: "bfloat16"}
"""By the number of binary digits."""
GAP = 30.0
"""How much larger the smallest singular value that counts must be than the largest one that is left out."""
NEAR = 3.0
"""Singular values up to so many times the limit of rounding are doubtful."""
_EXACT = 1e-6  # of one rounding: a singular value below is zero, and has not been rounded
_CLEAR = {24: 1e3, 11: 30.0, 8: 30.0}  # points further than so many roundings from those before them are independent
_SQUARED = 1e-14  # of the first: a smaller square is rounding of float64
_FRACTION = 52  # bits of a float64


class Directions(NamedTuple):
    """How many directions of the points are what."""

    kept: int
    """neither zero nor left out"""
    dropped: int = 0
    """rounding alone, and left out"""
    doubtful: int = 0
    """so near rounding that it cannot be told, and kept"""


def in_words(dropped: float, doubtful: float) -> list[str]:
    """What is to be said of a number, if anything."""
    said = [f"{int(dropped)} directions are rounding alone, and are left out"] if dropped > 0 else []
    return said + ([f"{int(doubtful)} directions may be rounding, and count all the same"] if doubtful > 0 else [])


def rounding_of(of: Manifolds) -> float:
    """How far rounding has moved a unit vector, rms, as the digits of the first point have it; 0 in float64."""
    found = digits(of.recorded[:1])
    if found > max(FORMATS):
        return 0.0
    return _moved(found) / min(float(_share_left(of)[0].min()), 1.0) if of.centred else _moved(found)


def _share_left(of: Manifolds) -> tuple[Floats, Floats]:
    """(point) how much of its length centring has left of it, and the unit vectors of what was recorded."""
    units, lengths, _, exponent = with_lengths(of.recorded)
    share = np.divide(of.norms, lengths, out=np.ones_like(lengths), where=(lengths > 0.0) & (of.norms > 0.0))
    return np.ldexp(share, of.exponent - exponent), units


def without_rounding(of: Manifolds, gram: Floats | None = None) -> tuple[Manifolds, Directions]:
    """The same points without the directions that rounding alone has made; `of` itself where there are none.

    gram (point, point): inner products of the unit vectors, if they are known. Where they show that all directions are
    there, nothing else is looked at.

    >>> from waterjar.diagnose.geometry import manifolds
    >>> rng = np.random.default_rng(0)
    >>> points = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 10))
    >>> [without_rounding(manifolds(points.astype(kind), np.arange(40)))[1].dropped for kind in ("f2", "f4", "f8")]
    [7, 7, 0]
    """
    whole = Directions(min(of.units.shape))
    if digits(of.recorded[:1]) > max(FORMATS):  # most float64 ends here
        return of, whole
    found = digits(of.recorded)
    if found not in FORMATS or not np.isfinite(of.norms).all():
        return of, whole
    noise, rows, columns = _moved(found), of.units, of.units
    if of.centred:  # rounding is a share of what was recorded, not of what centring left of it
        share, columns = _share_left(of)
        rows, gram = of.units * share[:, None], None
    if _has_all_directions(rows, gram, _CLEAR[found] * noise, of.centred):
        return of, whole
    alive = of.points.any(axis=0)
    rows, sums = rows[:, alive], found == 24
    one = noise * (1.0 + math.sqrt(float(np.square(columns).sum(axis=0).max())))
    if not sums and (told := told_apart(_by_squares(rows), one, sums=sums)).dropped == 0:
        return of, told  # coarse rounding is seen in the squares, too, which are quicker
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    told = told_apart(values, one, sums=sums)
    if told.dropped == 0:
        return of, told
    axes, x = axes[told.kept : told.kept + told.dropped], of.points.copy()
    x[:, alive] -= (x[:, alive] @ axes.T) @ axes
    units, norms, x, exponent = with_lengths(x)
    exponent += of.exponent if of.centred else 0
    return replace(of, units=units, norms=norms, points=x, exponent=exponent), told


def _by_squares(rows: Floats) -> Floats:
    """Singular values in falling order, to 1e-7 of the first."""
    products = rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
    squares = np.asarray(np.linalg.eigvalsh(products)[::-1], np.float64)
    return np.sqrt(np.where(squares > _SQUARED * squares[0], squares, 0.0))


def _moved(of_digits: int) -> float:
    return math.ldexp(1.0, 1 - of_digits) / math.sqrt(12.0)


def digits(x: Floats) -> int:
    """How many binary digits the numbers have, from the first to the last that is not zero in all of them.

    >>> [digits(np.array([1.5, third])) for third in (0.25, np.float16(1 / 3), np.float32(1 / 3), 1 / 3)]
    [2, 11, 24, 53]
    """
    fraction = int(np.bitwise_or.reduce(x.view(np.int64), axis=None)) & (2**_FRACTION - 1)
    return 1 + _FRACTION - ((fraction & -fraction).bit_length() - 1) if fraction else 1


def told_apart(values: Floats, one: float, *, sums: bool) -> Directions:
    """Which of the singular values, in falling order, are rounding; `one` rounding.

    sums: whether sums may have been rounded, too, and not only their result.

    >>> told_apart(np.array([3.0, 1.0, 2e-7, 1e-7]), 1e-7, sums=True)
    Directions(kept=2, dropped=2, doubtful=0)
    >>> told_apart(np.array([3.0, 8e-7, 2e-7, 1e-7]), 1e-7, sums=True)
    Directions(kept=4, dropped=0, doubtful=3)
    """
    there = values[values > _EXACT * one]
    rank = np.arange(1, len(there))
    limits = one * (2.0 + (np.sqrt(rank) if sums else 0.0 * rank))
    apart = np.flatnonzero((there[1:] <= limits) & (there[:-1] >= GAP * there[1:]))
    if len(apart):
        return Directions(int(apart[0]) + 1, len(there) - int(apart[0]) - 1, 0)
    return Directions(len(there), 0, int((there[1:] <= NEAR * limits).sum()))


def _has_all_directions(rows: Floats, gram: Floats | None, least: float, centred: bool) -> bool:
    """Whether as many points as there are directions are independent, each further than `least` from those before.

    The diagonal of a Cholesky factor is that distance. Of points of low rank, any that are more than the rank are
    nearer: so it takes no more points than there are directions.
    """
    points, dimension = rows.shape
    step = max(points // dimension, 1)
    chosen = slice(0, step * min(points, dimension), step)  # from all manifolds
    if gram is None:
        part = rows[chosen]
        products = part @ part.T
    else:
        products = gram[chosen, chosen]
    factor, failed = lapack.dpotrf(products.T, lower=1, clean=0)
    distances = np.diagonal(factor)[: failed - 1 if failed > 0 else None]
    near = distances <= least
    independent = int(near.argmax()) if near.any() else len(distances)
    if independent == len(products):
        return True
    alive = rows.any(axis=0)
    return independent >= min(int(rows.any(axis=1).sum()) - centred, int(alive.sum()))
