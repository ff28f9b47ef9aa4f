"""A training that is told to stop goes on to the end of its batch, writes a checkpoint, and stops then.

That is what SIGTERM asks for when a cluster wants its machine back. Worker processes `install` it; while a training
says that it heeds such a request, a signal only leaves word, and what is not heeded for too long is interrupted.
Anything else is interrupted at once. Without `install` nothing here does anything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Iterator
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A training has stopped behind a checkpoint, as it was told to."""


@dataclasses.dataclass
class _Word:
    grace: float = 0.0
    heeded: bool = False
    requested: bool = False


_WORD = _Word()


def install(grace: float, *signals: signal.Signals) -> None:
    """From now on these signals ask this process to stop; a training has `grace` seconds to come to a checkpoint."""
    _WORD.grace = grace
    signal.signal(signal.SIGALRM, _interrupt)
    for number in signals or (signal.SIGTERM,):
        signal.signal(number, _stop)


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """What is done within looks at `requested` often enough."""
    _WORD.heeded = True
    try:
        yield
    finally:
        _WORD.heeded = False
        if _WORD.requested:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def requested() -> bool:
    """Whether this process was told to stop."""
    return _WORD.requested


def stop_if_requested() -> None:
    """Stop here, behind a checkpoint, if that was asked for."""
    if _WORD.requested:
        raise Stopped


def _stop(number: int, frame: FrameType | None) -> None:
    if not _WORD.heeded:
        _interrupt(number, frame)
    if not _WORD.requested:  # a cluster may say it several times
        _WORD.requested = True
        signal.setitimer(signal.ITIMER_REAL, _WORD.grace)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _WORD.requested = True
    if number != signal.SIGALRM:
        signal.signal(number, signal.SIG_IGN)  # once is enough: a second one would cut the tidying up short
    raise KeyboardInterrupt
