"""Shapes that all array functions of this family share.

    A[..., train, eval, epoch]   accuracy on task `eval` at a logged epoch while task `train` is trained
    R[..., train, eval]          the same after integration over epochs, or at the end of each task
    epochs                       (epoch,) or, where tasks were logged at different epochs, (train, epoch)

`train` and `eval` are the same tasks in the order of training; before them stand any batch dimensions (repeats, runs).
A NaN is an evaluation that did not take place: curves of different length are padded with NaN.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.result import NOT_A_NUMBER, UNDEFINED, Floats, Result
from waterjar.errors import WaterjarError
from waterjar.run.accuracies import check_accuracies, outside, refuse_where

Bools = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


Scale = Literal["accuracy", "above_chance", "any"]
"""What numbers may be: an accuracy lies in [0, 1], performance above chance ends at 1, of a loss anything is finite."""


def check_scale(values: Floats, name: str, scale: Scale) -> None:
    """Refuse numbers that are not on their scale; NaN is missing, and passes.

    >>> check_scale(np.array([0.5, -0.2, 80.0]), "R", "above_chance")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: R has 80 at position (2): performance above chance is finite, and 1 at ...
    """
    if scale == "accuracy":
        check_accuracies(values, name)
    elif scale == "above_chance":
        wrong = np.isinf(values) | outside(values, -np.inf)
        refuse_where(wrong, values, name, "performance above chance is finite, and 1 at most")
    elif np.isinf(values).any():
        raise WaterjarError(f"{name} has an infinite value: expected finite numbers, or NaN where there is none")


def matrix_of(values: ArrayLike, scale: Scale = "accuracy") -> Floats:
    """R[..., train, eval] as float64, not copied if it is that already, checked."""
    array = np.asarray(values, np.float64)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.shape[-1]:
        raise WaterjarError(f"R has shape {array.shape}: expected (..., train, eval) with the same tasks along both")
    check_scale(array, "R", scale)
    return array


def curves_of(values: ArrayLike, epochs: ArrayLike | None = None, scale: Scale = "accuracy") -> tuple[Floats, Floats]:
    """A[..., train, eval, epoch], checked, and its epochs as (train, epoch); these are 1, 2, 3 ... if not given."""
    array = np.asarray(values, np.float64)
    if array.ndim < 3 or array.shape[-2] != array.shape[-3] or not array.size:
        raise WaterjarError(
            f"curves have shape {array.shape}: expected (..., train, eval, epoch) with the same tasks along train and "
            "eval, and at least one epoch"
        )
    check_scale(array, "curves", scale)
    return array, epochs_of(epochs, array.shape[-3], array.shape[-1])


def epochs_of(epochs: ArrayLike | None, tasks: int, length: int) -> Floats:
    """Epochs as (train, epoch), checked: each task's rise, and only padding at the end is NaN."""
    if epochs is None:
        return np.broadcast_to(np.arange(1.0, length + 1), (tasks, length))
    array = np.asarray(epochs, np.float64)
    if array.shape not in ((length,), (tasks, length)):
        raise WaterjarError(f"epochs have shape {array.shape}: expected ({length},) or ({tasks}, {length})")
    check_rising(array)
    return np.broadcast_to(array, (tasks, length))


def check_rising(epochs: Floats) -> None:
    """Refuse epochs that do not rise, or have a gap: NaN is for the padding at the end."""
    known = ~np.isnan(epochs)
    if (known[..., 1:] & ~known[..., :-1]).any() or (np.diff(epochs) <= 0).any():
        raise WaterjarError("epochs must rise within a task, and NaN may stand only at the end, as padding")


def learned(R: NDArray[Scalar]) -> NDArray[Scalar]:
    """(..., task): the diagonal, each task at the end of its own training."""
    return np.diagonal(R, axis1=-2, axis2=-1)


def own_curves(A: Floats) -> Floats:
    """(..., task, epoch): each task while it is trained itself."""
    return np.moveaxis(np.diagonal(A, axis1=-3, axis2=-2), -1, -2)


def told(values: Floats, source: Floats, trailing: int, covered: Bools | bool = True) -> Result:
    """What an array function returns: values, of a source whose last `trailing` dimensions belong together.

    A NaN is `not_a_number` where the source has one, else `undefined`; what is not `covered` by the definition is made
    of nothing.
    """
    batch = source.ndim - trailing
    broken = np.isnan(source).reshape(*source.shape[:batch], -1).any(-1)
    codes = np.where(broken, NOT_A_NUMBER, UNDEFINED).reshape((*broken.shape, *(1,) * (values.ndim - batch)))
    return within(values, codes, covered)


def within(values: Floats, reasons: NDArray[np.integer], covered: Bools | bool) -> Result:
    """Values with their reasons; what the definition does not cover is undefined, whatever else is missing there."""
    return Result.of(values, np.where(covered, reasons, UNDEFINED), n=np.where(covered, 1, 0))


def mean_or_nan(values: Floats) -> Floats:
    """The mean over the last axis, NaN of nothing: there is no task to average over."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
