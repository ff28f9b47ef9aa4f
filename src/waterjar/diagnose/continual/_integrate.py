"""A curve over the epochs of one task becomes one number."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import check_rising
from waterjar.diagnose.result import Floats
from waterjar.errors import WaterjarError, unknown_name

Integrator = Literal["final", "auc", "mean", "min", "max", "median"]
INTEGRATORS: tuple[str, ...] = get_args(Integrator)


def integrate(curves: ArrayLike, epochs: ArrayLike | None = None, how: str = "final") -> Floats:
    """Reduce curves (..., epoch) over their last axis.

    | how | |
    |---|---|
    | final | the last value that is there |
    | auc | trapezoid over the real epochs, divided by their length: in the units of the curve; of one value itself |
    | mean, min, max, median | over the values that are there, each evaluation counted once |

    Curves of different length are padded with NaN: `auc` runs from the first to the last value that is there.

    Parameters
    ----------
    curves : (..., epoch); NaN where there was no evaluation. A curve without any value gives NaN.
    epochs : anything that broadcasts against `curves`; 1, 2, 3 ... if not given. Only `auc` looks at it.

    >>> integrate([0.0, 0.5, 1.0, np.nan], [0, 1, 4, np.nan], "auc")
    np.float64(0.625)
    >>> integrate([[0.2, 0.9], [0.4, np.nan]])
    array([0.9, 0.4])
    """
    array = np.asarray(curves, np.float64)
    if not array.ndim or not array.shape[-1]:
        raise WaterjarError(f"curves have shape {array.shape}: expected (..., epoch) with at least one epoch")
    if how == "final":
        return last_value(array)
    if how == "auc":
        area, length = trapezoid(array, epochs)
        single = length == 0
        found: Floats = np.where(single, last_value(array), area / np.where(single, 1.0, length))[()]
        return found
    if how not in INTEGRATORS:
        raise unknown_name("integrator", how, INTEGRATORS)
    if how in ("min", "max"):  # fmin and fmax pass over NaN
        extreme: Floats = (np.fmin if how == "min" else np.fmax).reduce(array, axis=-1)
        return extreme
    if not np.isnan(array).any():
        plain: Floats = array.mean(-1) if how == "mean" else np.median(array, axis=-1)
        return plain
    some = ~np.isnan(array).all(-1)
    reduced = np.full(array.shape[:-1], np.nan)
    reduced[some] = (np.nanmean if how == "mean" else np.nanmedian)(array[some], axis=-1)
    return reduced[()]


def last_value(curves: Floats) -> Floats:
    """(..., epoch) -> (...): the last value that is there."""
    values = np.array(curves[..., -1])
    gone = np.isnan(values)
    if gone.any():
        rest = curves[gone]
        place = rest.shape[-1] - 1 - np.argmax(~np.isnan(rest[:, ::-1]), axis=-1)
        values[gone] = np.take_along_axis(rest, place[:, None], -1)[:, 0]
    return values[()]


def trapezoid(curves: Floats, epochs: ArrayLike | None) -> tuple[Floats, Floats]:
    """Area below curves (..., epoch), and its length in epochs, from the first to the last value that is there.

    Across evaluations that did not take place the line is straight. Without any value the area is NaN, the length 0.
    """
    x = on_epochs(curves, epochs)
    if not np.isnan(curves).any():
        steps = np.diff(x)
        weights = np.zeros(x.shape)
        weights[..., :-1] += steps / 2
        weights[..., 1:] += steps / 2
        return np.einsum("...e,...e->...", curves, weights), np.broadcast_to(x[..., -1] - x[..., 0], curves.shape[:-1])
    x = np.broadcast_to(x, curves.shape)
    there = ~np.isnan(curves)
    latest = np.maximum.accumulate(np.where(there, np.arange(curves.shape[-1]), -1), axis=-1)
    before = latest[..., :-1]
    both = there[..., 1:] & (before >= 0)
    place = np.maximum(before, 0)
    width = np.where(both, x[..., 1:] - np.take_along_axis(x, place, -1), 0.0)
    height = np.where(both, curves[..., 1:] + np.take_along_axis(curves, place, -1), 0.0) / 2
    return np.where(there.any(-1), (width * height).sum(-1), np.nan), width.sum(-1)


def on_epochs(curves: Floats, epochs: ArrayLike | None) -> Floats:
    """The epochs of curves (..., epoch), checked: each value has one."""
    length = curves.shape[-1]
    x = np.arange(1.0, length + 1) if epochs is None else np.asarray(epochs, np.float64)
    if not x.ndim or x.shape[-1] != length or np.broadcast_shapes(x.shape, curves.shape) != curves.shape:
        raise WaterjarError(f"epochs of shape {x.shape} do not fit curves of shape {curves.shape}: (..., epoch)")
    check_rising(x)
    if np.isnan(x).any() and (np.isnan(x) & ~np.isnan(curves)).any():
        raise WaterjarError("a value stands at an epoch that is NaN: NaN epochs are for padding")
    return x
