"""How far a long command is: bars on a terminal, and elsewhere a line now and then. All of it goes to stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from waterjar.run.shown import visible

Thing = TypeVar("Thing")
FIRST, EVERY = 2.0, 10.0
"""Seconds until the first line, and between lines: what is done by then says nothing."""


class Lines:
    """Says on stderr how far something is: first after `FIRST` seconds, then every `EVERY` seconds, and at the end.

    A thread of its own says so, because what is waited for may not come back to us for minutes. `text` is asked
    whenever a line is due, and gets the seconds since the beginning.
    """

    def __init__(self, text: Callable[[float], str]) -> None:
        self._text = text
        self._began = time.monotonic()
        self._over = threading.Event()
        self._said = False
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def close(self, last: str = "") -> None:
        """Stop, with a last line if there was one before."""
        self._over.set()
        self._thread.join()
        if self._said and last:
            say(last)

    @property
    def gone(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def _speak(self) -> None:
        wait = FIRST
        while not self._over.wait(wait):
            wait = EVERY
            text = self._text(self.gone)
            if text:
                say(text)
                self._said = True


class Working:
    """How far some work is, told part by part: `watch(part, done, total)`; a total of 0 is not known."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._part, self._done, self._total = "", 0.0, 0
        self._began: dict[str, float] = {}
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}

    def watch(self, part: str, done: float, total: int) -> None:
        """Note how far a part is."""
        self._began.setdefault(part, time.monotonic())
        self._part, self._done, self._total = part, done, total
        if self._bars is not None:
            if part not in self._tasks:
                self._tasks[part] = self._bars.add_task(visible(part), total=total or None)
            self._bars.update(self._tasks[part], completed=done, total=total or None)

    def each(self, part: str, things: Sequence[Thing]) -> Iterator[Thing]:
        """Go through things, and note how many are done."""
        for done, thing in enumerate(things):
            self.watch(part, done, len(things))
            yield thing

    def figure(self, name: str, done: int, total: int) -> None:
        """Note how many figures are drawn; `name` is the one that is drawn now."""
        self.watch("figures", done, total)

    def line(self, gone: float) -> str:
        """What is said of it where there are no bars."""
        begin = ": ".join(one for one in (self._what, self._part) if one)
        share = self._done / self._total if self._total else 0.0
        if not self._part or not 0 < share < 1:
            return f"{begin} ... {duration(gone)} so far"
        since = time.monotonic() - self._began[self._part]
        return f"{begin}: {share:.0%}, about {duration(since * (1 - share) / share)} left of it"

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Bars on a terminal, else lines, until it is over."""
        if not sys.stderr.isatty():
            lines = Lines(self.line)
            try:
                yield
            except BaseException:
                lines.close()
                raise
            lines.close(f"{self._what}: done in {duration(lines.gone)}")
            return
        from rich.console import Console  # noqa: PLC0415 - not for --help
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as self._bars:
            yield


@contextlib.contextmanager
def working(what: str) -> Iterator[Working]:
    """Around long work, which `what` names; work that knows how far it is tells `watch`."""
    work = Working(what)
    with work.shown():
        yield work


def say(text: str) -> None:
    """One line on stderr, escaped."""
    sys.stderr.write(f"waterjar: {visible(text)}\n")
    sys.stderr.flush()


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(59.6), duration(3), duration(7260)
    ('1 min 00 s', '3 s', '2 h 01 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
