"""Learning curves: smoothing them, and when they reach a threshold. Vectorised; the last axis is the epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from waterjar.diagnose.result import NEVER_REACHED, NOT_A_NUMBER, Codes, Floats
from waterjar.diagnose.settings import plain
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import check_accuracies

ROUNDING = 1e-12
"""A mean of w accuracies may miss the threshold by rounding alone: 0.6 three times has the mean 0.6 - 1e-16 or 0.6,
by the order of the sum. Accuracies are counts over at most millions of images, so nothing real is this small."""


def trailing_mean(curve: ArrayLike, window: int = 3) -> Floats:
    """Mean over the last `window` evaluations, fewer at the start, never centred: s_t = mean(a_{t-w+1} ... a_t).

    Shape (..., epoch) in and out. NaN makes every mean that contains it NaN; nothing else.

    >>> trailing_mean([0.0, 0.3, 0.6, 0.9], window=3)
    array([0.  , 0.15, 0.3 , 0.6 ])
    """
    values = np.asarray(curve, np.float64)
    width = check_window(window)
    if values.ndim < 1:
        raise WaterjarError("a single number is no curve: give one accuracy per evaluation")
    width = min(width, max(values.shape[-1], 1))
    padded = np.concatenate([np.zeros((*values.shape[:-1], width - 1)), values], axis=-1)
    sums = sliding_window_view(padded, width, axis=-1).sum(axis=-1) if values.shape[-1] else values
    counts = np.minimum(np.arange(1, values.shape[-1] + 1), width)
    return np.asarray(sums / counts, np.float64)


class Crossing(NamedTuple):
    """When a threshold was reached: the epoch, NaN where it was not; and why not, as a code of REASONS."""

    epoch: Floats
    reason: Codes


def first_epoch_at(
    curve: ArrayLike, threshold: ArrayLike, *, epochs: ArrayLike | None = None, reasons: ArrayLike | None = None
) -> Crossing:
    """First epoch at which a (smoothed) curve reaches a threshold: E(tau) = min {epoch_t : s_t >= tau}.

    Parameters
    ----------
    curve : (..., epoch). Smooth it first, with `trailing_mean`.
    threshold : a number, or an array that broadcasts with (...); a new last axis of `curve` of size 1 before the
        epochs gives a grid.
    epochs : (epoch,), increasing; 1, 2, 3 ... by default.
    reasons : (..., epoch), why values of the curve are missing; `not_a_number` by default.

    Never reached is right-censored: NaN, `never_reached`. A NaN before the first crossing could hide an earlier
    one, so the epoch is unknown: NaN with that value's reason. A NaN behind the crossing changes nothing.

    >>> first_epoch_at([0.2, 0.7, 0.9], 0.6).epoch.item()
    2.0
    """
    values = np.asarray(curve, np.float64)
    if values.ndim < 1 or values.shape[-1] == 0:
        raise WaterjarError(f"the curve has shape {values.shape}: expected at least one evaluation")
    axis = check_epochs(epochs, values.shape[-1], "epochs")
    level = np.asarray(threshold, np.float64)
    gone = np.isnan(values)
    with np.errstate(invalid="ignore"):
        reached = values >= level[..., None] - ROUNDING
    gone = np.broadcast_to(gone, reached.shape)
    first = np.where(reached.any(-1), reached.argmax(-1), reached.shape[-1])
    hole = np.where(gone.any(-1), gone.argmax(-1), reached.shape[-1])
    why = np.full(reached.shape, NOT_A_NUMBER, np.uint8)
    if reasons is not None:
        told = np.broadcast_to(np.asarray(reasons, np.uint8), reached.shape)
        why = np.where(told > 0, told, why)
    unknown = hole < first
    code = np.where(reached.any(-1), 0, NEVER_REACHED).astype(np.uint8)
    at_hole = np.take_along_axis(why, np.minimum(hole, reached.shape[-1] - 1)[..., None], -1)[..., 0]
    code = np.where(unknown, at_hole, code).astype(np.uint8)
    epoch = np.where(code == 0, axis[np.minimum(first, len(axis) - 1)], np.nan)
    return Crossing(epoch, code)


def check_curve(curve: ArrayLike, name: str) -> Floats:
    """One accuracy per evaluation, (epoch,), each in [0, 1] or NaN; a copy."""
    try:
        values = np.array(curve, np.float64)
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"{name}: numbers are needed, one accuracy per evaluation ({error})") from error
    if values.ndim != 1 or values.size == 0:
        raise WaterjarError(
            f"{name} has shape {values.shape}: expected one accuracy per evaluation, shape (epoch,); "
            "call it once per seed, or measure the study"
        )
    check_accuracies(values, name)
    return values


def check_epochs(epochs: ArrayLike | None, n: int, name: str) -> Floats:
    """One epoch per evaluation, increasing; 1, 2, 3 ... where none are given."""
    if epochs is None:
        return np.arange(1.0, n + 1.0)
    try:
        values = np.array(epochs, np.float64)
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"{name}: numbers are needed, one per evaluation ({error})") from error
    if values.shape != (n,):
        raise WaterjarError(f"{name} has shape {values.shape}, the curve has {n} evaluations: one epoch each")
    if not np.isfinite(values).all():
        raise WaterjarError(f"{name} must be finite numbers, and has {values[~np.isfinite(values)][0]}")
    steps = np.diff(values)
    if (steps == 0).any():
        twice = values[1:][steps == 0][0]
        raise WaterjarError(
            f"{name} has {twice:g} twice: two phases under one key would be mixed. Keep the last task's epochs"
        )
    if (steps < 0).any():
        at = int(np.flatnonzero(steps < 0)[0])
        raise WaterjarError(f"{name} goes back from {values[at]:g} to {values[at + 1]:g}: put evaluations in order")
    return values


def check_window(window: object) -> int:
    """How many evaluations a trailing mean takes: a whole number from 1 on."""
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise WaterjarError(f"window={window!r}: expected a whole number of evaluations, at least 1")
    return int(window)


def check_threshold(threshold: object, name: str = "threshold") -> float:
    """An accuracy to reach: above 0, at most 1."""
    value = plain(threshold)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise WaterjarError(f"{name}={threshold!r}: expected an accuracy in (0, 1]")
    return float(value)
