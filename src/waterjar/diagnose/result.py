"""What every array function returns, and every metric: numbers that know why they are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.schema import REASONS

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]

NOT_RECORDED, NOT_A_NUMBER, EMPTY_SET, RUN_ENDED, NEVER_REACHED, UNDEFINED = range(1, 7)
CHANCE_UNKNOWN, NO_BASELINE, NO_RUN, NO_EVAL_SET, INSIDE_CONE, UNSOLVED, NOT_UNIQUE = range(7, 14)
ONE_TASK, NOT_ASKED = range(14, len(REASONS))
"""The reasons as codes, in the order of `REASONS`."""


@dataclass(frozen=True, eq=False)
class Result:
    """One number, or an array of them: value, why it is missing, what it is made of and how sure it is.

    Of one number `value` is a float and `reason` a word; of an array both are arrays, `reason` as codes of `REASONS`,
    and whatever else is given for each number is an array, too. `float(result)` is the number, `np.asarray(result)`
    the values.

    >>> float(Result(2.0, n=10))
    2.0
    >>> Result.missing("never_reached", "0.6 was not reached in 10 epochs", n=10, censored=True)
    Result(nan, reason='never_reached', n=10, censored=True, note='0.6 was not reached in 10 epochs')
    >>> Result.of([0.5, np.nan], reasons=[0, 5]).reason.tolist()
    [0, 5]
    """

    value: Any
    reason: Any = "present"
    n: Any = 1
    """Observations that a value is made of; 0 where the definition has no value at all."""
    standard_error: Any = math.nan
    censored: Any = False
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.value, np.ndarray):
            if np.any(np.isnan(self.value) != (self.reason != 0)):
                raise WaterjarError("NaN has a reason, and a number has none")
            return
        if self.reason not in REASONS:
            raise unknown_name("reason", self.reason, REASONS)
        if math.isnan(self.value) == (self.reason == "present"):
            raise WaterjarError(
                f"value {self.value} with reason '{self.reason}': NaN has a reason, a number is present"
            )

    @classmethod
    def missing(cls, reason: str, note: str = "", *, n: int = 0, censored: bool = False) -> Result:
        """A number that is not there, and why."""
        return cls(math.nan, reason, n, math.nan, censored, note)

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        reasons: ArrayLike = 0,
        *,
        n: ArrayLike = 1,
        standard_error: ArrayLike = math.nan,
        censored: ArrayLike = False,
        note: str = "",
    ) -> Result:
        """An array of numbers. A NaN without a reason is `undefined`; a reason beside a number counts for nothing."""
        array = np.asarray(values, np.float64)
        codes = np.broadcast_to(np.asarray(reasons, np.uint8), array.shape)
        codes = np.where(np.isnan(array), np.where(codes == 0, UNDEFINED, codes), 0).astype(np.uint8)
        if not array.ndim:
            return cls(float(array), REASONS[int(codes)], int(np.asarray(n)), standard_error, censored, note)
        return cls(array, codes, np.broadcast_to(n, array.shape), standard_error, censored, note)

    @classmethod
    def stack(cls, results: Sequence[Result]) -> Result:
        """Single numbers as one array, in their order."""
        values, codes, counts, errors, censored = (
            [getattr(one, key) for one in results] for key in ("value", "code", "n", "standard_error", "censored")
        )
        shape = (len(results),)
        made = cls.of(np.array(values, np.float64).reshape(shape), np.array(codes, np.uint8).reshape(shape))
        return cls(made.value, made.reason, np.array(counts), np.array(errors), np.array(censored))

    def __float__(self) -> float:
        return float(self.value)

    def __getitem__(self, place: Any) -> Any:
        """Values of an array."""
        return self.value[place]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        """The value, and of the rest what is not as usual."""
        told = [repr(self.value)]
        usual = {"reason": "present", "n": 1, "standard_error": math.nan, "censored": False, "note": ""}
        for name, default in usual.items():
            own = getattr(self, name)
            if isinstance(own, np.ndarray) or (own != default and own == own):  # noqa: PLR0124 - not NaN
                told.append(f"{name}={own!r}")
        return f"Result({', '.join(told)})"

    @property
    def code(self) -> Any:
        """The reason as stored in `<name>_reason`: a number, or an array of them."""
        return self.reason if isinstance(self.reason, np.ndarray) else REASONS.index(self.reason)

    @property
    def is_missing(self) -> bool:
        """Whether one number is not there."""
        return bool(self.reason != "present")
