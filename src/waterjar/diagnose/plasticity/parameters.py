"""The recorded parameters of one repeat at one snapshot, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.magnitude import scaled_back
from waterjar.diagnose.result import Result
from waterjar.diagnose.tensors import Tensor

_BLOCK = 2**20
"""Numbers squared at once: float64 copies of a whole network would triple the memory."""
_SAFE = (1e-200, 1e300)
"""Sums of squares in which nothing of weight has vanished or overflowed."""


@dataclass(frozen=True)
class Parameters:
    """Flattened parameters (param) of a repeat now, before training and at the end of the task before."""

    now: NDArray[Any]
    initial: NDArray[Any] | None
    task_start: NDArray[Any] | None
    tensors: tuple[Tensor, ...]

    def each(self, compute: Callable[[Tensor], Result]) -> list[Result]:
        """A number of every tensor."""
        return [compute(tensor) for tensor in self.tensors]

    def change(self, since: NDArray[Any] | None) -> list[Result]:
        """The root mean square of the difference of every tensor to what it was in other parameters."""
        if since is None:
            gone = Result.missing("not_recorded", "the parameters to compare with were not recorded")
            return [gone for _ in self.tensors]
        return self.each(lambda tensor: root_mean_square(self.now[tensor.place], since[tensor.place]))


def pooled(found: Sequence[Result]) -> Result:
    """The root mean square over all tensors, from that of each."""
    for result in found:
        if result.reason not in ("present", "undefined"):
            return result
    n = sum(result.n for result in found)
    if n == 0:
        return Result.missing("undefined", "there are no parameters")
    largest = max(float(result) for result in found if result.n)
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0  # squares of 1 or so, whatever the size
    return Result(unit * math.sqrt(sum((float(r) / unit) ** 2 * (r.n / n) for r in found if r.n)), n=n)


def root_mean_square(values: ArrayLike, since: ArrayLike | None = None) -> Result:
    """sqrt(mean (values - since)^2), in float64 whatever the dtype; `since` is 0 if not given.

    >>> float(root_mean_square([3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]))
    2.5
    """
    now = np.asarray(values).reshape(-1)
    before = None if since is None else np.asarray(since).reshape(-1)
    if not now.size:
        return Result.missing("undefined", "there are no parameters")
    total, exponent = _sum_of_squares(now, before, 0), 0
    if not _SAFE[0] < total < _SAFE[1]:  # also NaN: squares of extreme numbers, none at all, or really not finite
        if not np.isfinite(now).all() or (before is not None and not np.isfinite(before).all()):
            return Result.missing("not_a_number", "NaN or infinite parameters", n=now.size)
        ends = [float(np.abs(x.astype(np.float64)).max()) for x in (now, before) if x is not None]
        exponent = math.frexp(max(ends))[1] + 1
        total = _sum_of_squares(now, before, exponent)
    return scaled_back(math.sqrt(total / now.size), exponent, n=now.size)


def _sum_of_squares(now: NDArray[Any], before: NDArray[Any] | None, exponent: int) -> float:
    """Of (now - before) / 2^exponent; inf or NaN where that leaves float64."""
    total = 0.0
    for start in range(0, now.size, _BLOCK):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            block = np.ldexp(now[start : start + _BLOCK].astype(np.float64), -exponent)
            if before is not None:
                block -= np.ldexp(before[start : start + _BLOCK].astype(np.float64), -exponent)
            total += float(np.vdot(block, block))
    return total
