"""From the draws' numbers to the measures that are one number, with their standard errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry import _anchor_kernel as kernel
from waterjar.diagnose.geometry import _influence_kernel as influence_kernel
from waterjar.diagnose.geometry.cone import Floats, Integers, Manifolds

SCALARS = (
    "capacity",
    "capacity_approx",
    "dimension",
    "radius",
    "utility",
    "center_alignment",
    "axis_alignment",
    "center_axis_alignment",
    "center_alignment_inner",
    "axis_alignment_inner",
    "center_axis_alignment_inner",
    "inactive_share",
)
"""The measures that are one number; `<name>_se` is its standard error over draws."""
_RATIOS = (
    "capacity",
    "capacity_approx",
    "dimension",
    "utility",
    "radius",
    "inactive_share",
    "axis_alignment",
    "center_axis_alignment",
    "axis_alignment_inner",
    "center_axis_alignment_inner",
)
_MEASURED = (*_RATIOS, "center_alignment", "center_alignment_inner")
_ERRORS = tuple(f"{name}_se" for name in _MEASURED)
_APPROX, _RADIUS = _RATIOS.index("capacity_approx"), _RATIOS.index("radius")
SAME = 1e-10
"""b - c below this share of b is rounding. Where c = b in exact arithmetic, 1e-16 to 1e-13 was seen (P from 20 to 100,
N from 9 to 51), and where it is not, but nearly so (P a little below 2 N), 1e-3 and more: this stands between them."""


def shifts(
    of: Manifolds,
    t: Floats,
    s0: Floats,
    support: tuple[Integers, Integers, Floats],
    products: tuple[Floats, Floats, Floats],
    used: NDArray[np.bool_],
    solved: Floats,
) -> Floats:
    """What each draw adds to b, c and the alignments with axes, (measure, draw), by moving the centres.

    support: count, members, weights; products: S S', S S0', S0 S0'. See `_influence_kernel`.
    """
    count, members, weights = support
    on_points = np.zeros((len(of.owner), influence_kernel.MEASURES, of.count))
    on_center = np.zeros((influence_kernel.MEASURES, of.count, of.count))
    influence_kernel.center_gradients(*products, used, solved, count, members, weights, of.owner, on_points, on_center)
    rows = (influence_kernel.MEASURES * of.count, -1)
    gradient = on_points.reshape(len(of.owner), -1).T @ of.units
    gradient += on_center.reshape(*rows) @ s0
    gradient[: 2 * of.count] -= 2.0 * (solved.reshape(len(t), -1).T @ t)
    gradient = gradient.reshape(influence_kernel.MEASURES, of.count, -1)
    gradient /= np.maximum(used.sum(axis=0), 1)[:, None]
    along = np.empty((influence_kernel.MEASURES, len(of.owner)))
    for m in range(of.count):
        block = slice(int(of.offsets[m]), int(of.offsets[m + 1]))
        along[:, block] = gradient[:, m] @ of.units[block].T
    of_center = np.einsum("kmd,md->km", gradient, s0) @ used.T
    shift = np.zeros((influence_kernel.MEASURES, len(t)))
    influence_kernel.center_shift(count, members, weights, of.owner, along, of_center, shift)
    return shift


def scalars(
    a: Floats,
    table: Floats,
    used: NDArray[np.bool_],
    active: NDArray[np.bool_],
    centers: tuple[float, float],
    shift: Floats,
    paired: bool,
) -> dict[str, float]:
    """Every measure that is one number, and its standard error.

    Most are ratios of means over draws, E[above] / E[below]; linearised, a draw adds (above - ratio below) / E[below]
    to the error, with what it adds by moving the centres (`shifts`). A plain mean has 1 below, and 0 for a draw that
    has no value. centers: the mean cosine and inner product of the centres.
    """
    n, manifold_count = active.shape
    b, c, counted = table[:, kernel.BB], table[:, kernel.CC], used.sum(axis=1)
    above, below = np.empty((len(_RATIOS), n)), np.ones((len(_RATIOS), n))
    for row, values in enumerate((manifold_count, counted, b, c, c, 1.0 - active.sum(axis=1) / manifold_count)):
        above[row] = values
    for row, values in enumerate((a, c, counted, a, b - c)):
        below[row] = values
    above[6:] = table[:, kernel.AXIS_COSINE : kernel.CENTER_AXIS_INNER + 1].T
    missing = np.isnan(above)
    below[missing], above[missing] = 0.0, 0.0
    under = below.sum(axis=1)
    under[under <= 0] = math.nan
    if not under[_RADIUS] > SAME * b.sum():
        under[_RADIUS] = math.nan
    ratios = above.sum(axis=1) / under
    above[2:5] += shift[[0, 1, 1]]
    below[[1, 4]] += np.stack([shift[1], shift[0] - shift[1]])
    above[6:] += shift[[4, 2, 5, 3]]
    influence = np.empty((len(_RATIOS) + 2, n))
    influence[:-2] = (above - ratios[:, None] * below) * (n / under[:, None])
    radius = math.sqrt(ratios[_RADIUS]) if ratios[_RADIUS] >= 0 else math.nan
    influence[_RADIUS] /= 2 * radius if radius > 0 else math.nan
    ratios[_RADIUS] = radius
    if math.isnan(radius):  # (1 + radius^-2) / dimension
        ratios[_APPROX] = math.nan
    without = table[:, kernel.CENTER_COSINE : kernel.CENTER_INNER + 1].T
    influence[-2:] = (n - 1) * (without.sum(axis=1, keepdims=True) / n - without)  # jackknife
    if paired:
        influence = influence.reshape(len(influence), -1, 2).sum(axis=2) / 2
    count = influence.shape[1]
    values = np.concatenate([ratios, centers])
    # Their mean over draws is zero. One pair alone has no error.
    total = np.einsum("ij,ij->i", influence, influence)
    errors = np.sqrt(total / (count * (count - 1))) if count > 1 else np.full(len(total), math.nan)
    errors[np.isnan(values)] = math.nan
    return dict(zip(_MEASURED, values.tolist(), strict=True)) | dict(zip(_ERRORS, errors.tolist(), strict=True))


def ratio(above: Floats, below: Floats) -> Floats:
    """Entry by entry; NaN where there is nothing to divide by."""
    found: Floats = np.divide(above, below, out=np.full(above.shape, math.nan), where=below > 0)
    return found


def radii(b: Floats, c: Floats) -> Floats:
    """sqrt(c / (b - c)); NaN where that is negative, or b - c is rounding."""
    found = np.divide(c, b - c, out=np.full(b.shape, math.nan), where=(b - c) > SAME * np.abs(b))
    root: Floats = np.sqrt(found, out=np.full(found.shape, math.nan), where=found >= 0)
    return root
