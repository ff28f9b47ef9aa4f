"""How far a long evaluation is, said on standard error: in place on a terminal, line by line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Stages:
    """So many stages, one after the other.

    On a terminal the line of a stage is rewritten as it goes on; elsewhere (a log, a batch system) every stage is a
    line when it begins, and one more every `every` seconds.

    >>> import io
    >>> log = io.StringIO()
    >>> told = Stages(2, log, every=0.0)
    >>> told.begin("shifts"); told.tick(1, 4); told.begin("coalitions")
    >>> print(log.getvalue(), end="")
    [1/2] shifts
    [1/2] shifts: 1 of 4
    [2/2] coalitions
    """

    def __init__(self, count: int, to: TextIO | None = None, *, every: float = 10.0, shown: bool = True) -> None:
        self._count, self._every, self._shown = count, every, shown
        self._to = sys.stderr if to is None else to
        self._terminal = self._to.isatty()
        self._place, self._title, self._last = 0, "", 0.0

    def begin(self, title: str) -> None:
        """The next stage."""
        self._place, self._title, self._last = self._place + 1, title, time.monotonic()
        self._say("")

    def tick(self, done: int, of: int | None = None) -> None:
        """So much of this stage is done; said no more often than need be."""
        now = time.monotonic()
        if now - self._last >= (0.2 if self._terminal else self._every):
            self._last = now
            self._say(f": {done}" if of is None else f": {done} of {of}")

    def end(self) -> None:
        """All is done."""
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=self._to, flush=True)

    def _say(self, more: str) -> None:
        if self._shown:
            line = f"[{self._place}/{self._count}] {self._title}{more}"
            print(
                f"\r\x1b[K{line}" if self._terminal else line,
                end="" if self._terminal else "\n",
                file=self._to,
                flush=True,
            )
