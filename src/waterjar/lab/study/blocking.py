"""A pool for whoever waits for one result after the other, as measurements do.

A call whose worker is lost is made again, as often as a run is taken up again; what a call raises is raised: the calls
are pure functions, and would raise it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.lab.study.attempts import Event, record
from waterjar.lab.study.executors import LostWorkerError, Pool

_LOOK = 0.5  # seconds


class Blocking:
    """Calls on a pool, with futures that attend to it while they are waited for."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Call:
        """Start a call some time."""
        return Call(self._pool, fn, args)


class Call:
    """A call under way."""

    def __init__(self, pool: Pool, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._pool = pool
        self._call = (fn, *args)
        self._future = pool.submit(fn, *args)
        self._events = [Event("began", 0)]

    def result(self) -> Any:
        """Wait for what it comes to."""
        while True:
            while not self._future.done():
                self._pool.attend(_LOOK)
            try:
                return self._future.result()
            except LostWorkerError as error:
                self._events.append(Event("lost", 0, error.cause))
                why = record(self._events).set_aside
                if why is not None:
                    raise WaterjarError(why) from error
                self._future = self._pool.submit(*self._call)

    def cancel(self) -> None:
        """Do not start it any more."""
        self._future.cancel()
