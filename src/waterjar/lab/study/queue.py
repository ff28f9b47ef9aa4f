"""Working off the runs of a study on a pool: what is lost, interrupted or has raised goes back behind the others.

When a run is given up is decided in `attempts`. Runs that fail do not stop the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import Any, Protocol

from waterjar.errors import WaterjarError
from waterjar.lab.study.attempts import INTERRUPTED, MOST, Attempts, attempt, record
from waterjar.lab.study.executors import Future, LostWorkerError, Pool, reason
from waterjar.run.store import BUSY

_LOG = logging.getLogger(__name__)


class Executor(Protocol):
    """What is needed of an executor that is not ours: those of concurrent.futures have it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Start a call some time."""
        ...


class ForeignPool:
    """An executor that is not ours as a pool: it is neither attended to nor stopped."""

    stopped = ""

    def __init__(self, executor: Executor, runs_a_machine: int) -> None:
        self._executor = executor
        self.runs_a_machine = runs_a_machine

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Start a call some time."""
        return self._executor.submit(fn, *args)

    def attend(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def stop(self) -> None:
        """Nothing that was started here."""


def work_off(
    runs: Sequence[Path],
    calls: Mapping[str, tuple[Any, ...]],
    pool: Pool,
    session: str,
    meanwhile: Callable[[], None],
    poll_seconds: float,
) -> dict[str, str]:
    """Run the call (function and arguments) of every run to its end; returns name -> why of those that failed.

    `meanwhile` is called every `poll_seconds`. Whatever stops it (Ctrl-C) cancels what has not begun.
    """
    under_way: dict[str, Future] = {}
    failed: dict[str, str] = {}
    known = {run.name: Attempts(run, session) for run in runs}
    before: dict[str, int] = {}

    def submit(run: Path) -> None:
        before[run.name] = len(known[run.name].events())
        try:
            under_way[run.name] = pool.submit(attempt, session, str(run), *calls[run.name])
        except BrokenExecutor as error:  # while the first ones ran already
            failed[run.name] = _broken(error)

    try:
        for run in runs:
            submit(run)
        while True:
            for run in [run for run in runs if run.name in under_way and under_way[run.name].done()]:
                why = _judge(run.name, under_way.pop(run.name), known[run.name], before[run.name])
                if why is None:
                    submit(run)  # behind the others: if memory is short, they go first
                elif why:
                    failed[run.name] = why
            if not under_way:
                return failed
            meanwhile()
            pool.attend(poll_seconds)
    except BaseException:
        for future in under_way.values():
            future.cancel()
        raise


def _judge(name: str, future: Future, attempts: Attempts, before: int) -> str | None:
    """Why a run that has ended is given up; empty if it is complete, None if it is to be taken up again."""
    try:
        error = future.exception()
    except CancelledError as cancelled:
        error = cancelled
    if isinstance(error, BrokenExecutor):
        return _broken(error)
    if isinstance(error, CancelledError):
        return reason(error)
    try:
        if error is not None:
            return _decide(name, error, attempts, before)
        if future.result() == INTERRUPTED:
            _LOG.warning("%s: its worker was told to stop; it goes back into the queue, with its checkpoint", name)
            return None
        attempts.forget()
        return ""
    except WaterjarError as unwritten:  # the disk is full, say: nobody could count
        return reason(error or unwritten)


def _decide(name: str, error: BaseException, attempts: Attempts, before: int) -> str | None:
    """The same of a run that has failed; there were so many events `before` it was submitted."""
    since = attempts.events()[before:]
    if not since or since[-1].kind == "began":  # it could not leave word itself
        attempts.note_end(error)
    found = record(attempts.events())
    if found.set_aside is not None:
        return found.set_aside
    if BUSY in str(error):
        return reason(error) if found.began <= 1 or found.busy >= MOST else None
    if isinstance(error, LostWorkerError):
        times = f", {len(found.losses)} of at most {MOST} times without a new recorded step" if found.losses else ""
        cause = f" ({error.cause})" if error.cause else ""
        _LOG.warning("%s: its worker was lost%s%s; it is taken up again from its checkpoint", name, cause, times)
    else:
        _LOG.warning("%s: it raised, %d of at most %d times: %s", name, len(found.raises), MOST, reason(error))
    return None


def _broken(error: BrokenExecutor) -> str:
    return (
        f"{type(error).__name__}: the executor lost a worker process, most likely for want of memory, and gave up "
        "all runs under way. The default one, without `executor`, replaces such workers"
    )
