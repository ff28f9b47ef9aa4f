"""What a worker process does: one call after the other, until it is told to end or whoever started it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from waterjar.lab import stopping
from waterjar.lab.study.executors._pool import reason

READY = "ready"
BEGUN = "begun"
STOPPING = {signal.SIGINT, signal.SIGTERM}
GRACE = 3.0
"""Seconds for a training to come to a checkpoint when it is told to stop."""

_LOOK_UP = 0.5  # seconds between two looks of a worker at its parent
_ONCE_MORE = 0.05  # seconds until an interrupt that was lost is tried again


def work(pipe: Connection, parent: int) -> None:
    """Answer calls that come through a pipe: (whether it worked, result or reason, whether this was the last word).

    Before that it says `READY` once, and `BEGUN` at each call: one that nobody began costs nothing when a worker dies.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then says what to do
    stopping.install(GRACE)
    threading.Thread(target=_stop_without, args=(parent,), daemon=True).start()
    sys.unraisablehook = _quiet_when_stopped
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
            pipe.send(READY)
            while not stopping.requested():
                fn, args = pipe.recv()
                pipe.send(BEGUN)
                found = _call(pipe, fn, args)
                pipe.send((True, found, stopping.requested()))
        finally:  # it is on its way out: an interrupt now would only leave a traceback
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _call(pipe: Connection, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return fn(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # The parent says it. The process ends: what a failure leaves in memory or on a GPU is not for the next run.
        pipe.send((False, reason(error), True))
        raise SystemExit(1) from error


def _quiet_when_stopped(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that falls into a finaliser, or a call from C, is printed and lost: say nothing, and try again."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    stopping.install(GRACE)
    later = threading.Timer(_ONCE_MORE, os.kill, (os.getpid(), signal.SIGTERM))
    later.daemon = True
    later.start()


def _stop_without(parent: int) -> None:
    """Stop this process when its parent is gone, killed for instance: nobody would take its result."""
    while os.getppid() == parent:
        time.sleep(_LOOK_UP)
    os.kill(os.getpid(), signal.SIGTERM)  # so that the run is marked as interrupted
    time.sleep(GRACE + 1.0)
    os._exit(1)
