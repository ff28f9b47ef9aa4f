"""What an array function returns: a number that knows why it is missing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from waterjar.errors import unknown_name
from waterjar.run.schema import REASONS


@dataclass(frozen=True)
class Result:
    """A value, why it is missing, from how many observations it was made, and whether it was censored.

    >>> float(Result(2.0, n=10))
    2.0
    >>> Result.missing("never_reached", "0.6 was not reached in 10 epochs", n=10, censored=True)
    Result(value=nan, reason='never_reached', n=10, censored=True, note='0.6 was not reached in 10 epochs')
    """

    value: float
    reason: str = "present"
    n: int = 1
    censored: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise unknown_name("reason", self.reason, REASONS)
        if math.isnan(self.value) == (self.reason == "present"):
            raise ValueError(f"value {self.value} with reason '{self.reason}': NaN has a reason, a number is present")

    def __float__(self) -> float:
        return float(self.value)

    @property
    def code(self) -> int:
        """The reason as stored in `<name>_reason`."""
        return REASONS.index(self.reason)

    @classmethod
    def missing(cls, reason: str, note: str = "", *, n: int = 0, censored: bool = False) -> Result:
        """A value that is not there, and why."""
        return cls(math.nan, reason, n, censored, note)
