"""From the draws' numbers to the measures, with their standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.geometry.cone import Projections
from waterjar.diagnose.geometry.points import Floats, Integers
from waterjar.diagnose.geometry.solver import influence as influence_kernel
from waterjar.diagnose.geometry.solver import summary as summary_kernel
from waterjar.diagnose.geometry.workspace import room

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
_MEASURED = (  # in the order of the rows of `summary`
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
    "center_alignment",
    "center_alignment_inner",
)
_ERRORS = tuple(f"{name}_se" for name in _MEASURED)
_STACKED = ("center_cosine", "center_inner", "axis_cosine", "center_axis_cosine", "axis_inner", "center_axis_inner")


def shifts(
    found: Projections,
    support: tuple[Integers, Integers, Floats],
    inner_products: tuple[Floats, Floats, Floats],
    to_center: Floats,
    used: NDArray[np.bool_],
    draws: Integers,
    solved: Floats,
) -> Floats:
    """What each draw adds to b, c and the alignments with axes, (measure, draw), by moving the centres.

    support: count, members, weights; inner_products: S S', S S0', S0 S0'; to_center (point, manifold) = u . S0; draws
    (manifold): how many are used. See `influence`.
    """
    of, measures = found.of, influence_kernel.MEASURES
    on_points, along = room((len(of.owner), of.count, measures)), np.zeros((measures, len(of.owner)))
    on_points.fill(0.0)
    on_center, shift = np.empty((of.count, of.count, measures)), np.empty((measures, len(used)))
    influence_kernel.center_gradients(*inner_products, used, solved, *support, of.owner, on_points, on_center)
    gram = of.gram
    if gram is None:
        gram, toward = np.empty((0, 0)), on_points.reshape(len(of.owner), -1).T @ of.units
        for m, rows in enumerate(toward.reshape(of.count, measures, -1)):
            block = slice(int(of.offsets[m]), int(of.offsets[m + 1]))
            along[:, block] = rows @ of.units[block].T
    influence_kernel.center_shift(
        *support, of.owner, of.offsets, used, draws, solved, found.products, to_center, gram, on_points, on_center,
        along, shift,
    )  # fmt: skip
    return shift


def summary(
    a: Floats,
    measured: tuple[Floats, Floats, Floats],
    used: NDArray[np.bool_],
    active: NDArray[np.bool_],
    center: Floats,
    draws: Integers,
    shift: Floats,
    paired: bool,
) -> dict[str, Any]:
    """Every measure that is one number, with its standard error; those of manifolds and of pairs.

    measured: the table, parts and sums of `measure_draws`. See `summary`.
    """
    table, parts, sums = measured
    values, errors = np.empty((2, summary_kernel.VALUES))
    pairs, each = np.empty((summary_kernel.PAIRS, *center.shape)), np.empty((3, len(center)))
    summary_kernel.summarise(
        a, table, used, active, center, draws, parts, sums, shift, paired, values, errors, pairs, each
    )
    numbers: dict[str, Any] = dict(zip(_MEASURED, values.tolist(), strict=True))
    numbers.update(zip(_ERRORS, errors.tolist(), strict=True))
    numbers.update(zip(_STACKED, pairs, strict=True))
    numbers.update(manifold_dimension=each[0], manifold_radius=each[1], manifold_inactive_share=each[2])
    return numbers
