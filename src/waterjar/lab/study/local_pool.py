"""A pool of processes on this machine that outlives its workers, and whose workers do not outlive it.

`ProcessPoolExecutor` gives up on everything when one worker is killed, as the kernel does for want of memory. Here
each worker has a pipe of its own, so that a death names the run it interrupted: the worker is replaced and the run is
taken up again from its checkpoint, a bounded number of times. The other way round, a worker whose parent is gone
stops within a second or two. No threads on this side: whoever waits for results calls `attend`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from waterjar.errors import WaterjarError

MAX_DEATHS = 3
"""Deaths of a worker during one call, after which the call is given up."""

_GRACE = 5.0  # seconds for a process to end by itself
_LOOK_UP = 0.5  # seconds between two looks of a worker at its parent
_ONCE_MORE = 0.05  # seconds until an interrupt that was lost is tried again
_STOPPING = {signal.SIGINT, signal.SIGTERM}
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class _Call:
    name: str
    future: Future[Any]
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    deaths: list[int] = dataclasses.field(default_factory=list)
    """Exit codes of the workers that died over it."""


@dataclasses.dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    leaving: bool = False
    """It has reported a failure, its last word."""
    call: _Call | None = None


class LocalPool:
    """At most `workers` spawned processes, each with one call at a time. Results come in during `attend`."""

    def __init__(self, workers: int) -> None:
        self._size = workers
        self._workers: list[_Worker] = []
        self._waiting: collections.deque[_Call] = collections.deque()
        # Workers may have processes of their own, so they are no daemons; whoever forgets `stop` must not hang at exit.
        weakref.finalize(self, _end_all, self._workers)

    def submit(self, fn: Callable[..., Any], /, *args: Any, name: str = "a call") -> Future[Any]:
        """Queue a call; `name` is what it is called when its worker dies."""
        call = _Call(name, Future(), fn, args)
        self._waiting.append(call)
        return call.future

    def attend(self, seconds: float) -> None:
        """Hand out calls, take in results and replace dead workers, so long or until there is nothing left to do."""
        end = time.monotonic() + seconds
        while True:
            self._hand_out()
            if all(worker.call is None for worker in self._workers):
                return
            wait([worker.pipe for worker in self._workers], timeout=max(0.0, end - time.monotonic()))
            for worker in list(self._workers):
                self._look_at(worker)
            if time.monotonic() >= end:
                self._hand_out()
                return

    def stop(self) -> None:
        """End all workers now. What they were at is cut short; a run is safe up to its last checkpoint."""
        for worker in self._workers:
            if worker.call is not None:
                worker.process.terminate()
            worker.pipe.close()  # an idle one takes that as its leave
        end = time.monotonic() + _GRACE
        for worker in self._workers:
            _see_off(worker.process, max(0.0, end - time.monotonic()))
        self._workers.clear()
        self._waiting.clear()

    def _hand_out(self) -> None:
        while self._waiting:
            idle = [worker for worker in self._workers if worker.call is None]
            if not idle and len(self._workers) == self._size:
                return
            call = self._waiting.popleft()
            if not call.future.running() and not call.future.set_running_or_notify_cancel():
                continue
            worker = idle[0] if idle else self._start()
            try:
                worker.pipe.send((call.fn, call.args))
                worker.call = call
            except OSError:  # it died before: nobody's fault
                self._bury(worker)
                self._waiting.appendleft(call)

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        # A worker starts with the signals that stop a study blocked, until it can take them without a traceback; here
        # it means that no interrupt falls between the start of a process and its entry in the list.
        resource_tracker.ensure_running()  # it would lift the block while starting
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            process = context.Process(target=_work, args=(theirs, os.getpid()))
            process.start()
            worker = _Worker(process, ours)
            self._workers.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return worker

    def _look_at(self, worker: _Worker) -> None:
        alive = worker.process.is_alive()  # asked first: it may have said something and ended since
        try:
            while worker.pipe.poll():
                self._hear(worker, worker.pipe.recv())
        except (EOFError, OSError):
            alive = False
        if worker.leaving or not alive:
            self._bury(worker)

    def _hear(self, worker: _Worker, message: tuple[bool, Any] | None) -> None:
        if message is None:
            worker.ready = True
            return
        call, worker.call = worker.call, None
        assert call is not None
        worked, outcome = message
        if worked:
            call.future.set_result(outcome)
        else:
            worker.leaving = True
            call.future.set_exception(WaterjarError(outcome))

    def _bury(self, worker: _Worker) -> None:
        """A worker is gone: its call starts anew in another one, unless that has happened too often."""
        _see_off(worker.process, _GRACE)  # only then are its locks gone, too
        code = worker.process.exitcode or 0
        self._workers.remove(worker)
        worker.pipe.close()
        call = worker.call
        if call is None:
            return
        if not worker.ready and code > 0:
            raise WaterjarError(
                f"a worker process ended with exit code {code} before it could begin; what it wrote to stderr says "
                'why. A script that runs a study needs its lines below `if __name__ == "__main__":`'
            )
        call.deaths.append(code)
        if len(call.deaths) >= MAX_DEATHS:
            call.future.set_exception(WaterjarError(_post_mortem(call.deaths)))
            return
        _LOG.warning(
            "%s: its worker process died (%s), %d of at most %d times; it is taken up again from its checkpoint",
            call.name,
            _cause(code),
            len(call.deaths),
            MAX_DEATHS,
        )
        self._waiting.append(call)  # behind the others: if memory is short, they go first


def _end_all(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()


def _see_off(process: SpawnProcess, seconds: float) -> None:
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()


def _cause(code: int) -> str:
    """How a process ended.

    >>> _cause(-9), _cause(3)
    ('SIGKILL', 'exit code 3')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal has a number only
        return f"signal {-code}"


def _post_mortem(deaths: list[int]) -> str:
    causes = ", ".join(dict.fromkeys(_cause(code) for code in deaths))
    text = f"its worker process died {len(deaths)} times ({causes}), so it was given up"
    if -signal.SIGKILL in deaths:
        return (
            f"{text}. Most likely the machine ran out of memory: run fewer at a time (--workers 1), or make the run "
            "smaller (training.batch_size, the network's width, buffer_size, recording.samples)"
        )
    return f"{text}. That is a crash of compiled code, of torch or a driver, not of the run's settings"


def _work(pipe: Connection, parent: int) -> None:
    """What a worker process does: one call after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then says what to do
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_stop_without, args=(parent,), daemon=True).start()
    sys.unraisablehook = _quiet_when_stopped
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            pipe.send(None)
            while True:
                fn, args = pipe.recv()
                pipe.send((True, _call(pipe, fn, args)))
        finally:  # it is on its way out: an interrupt now would only leave a traceback
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _call(pipe: Connection, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return fn(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # The parent says it. The process ends: what a failure leaves in memory or on a GPU is not for the next run.
        pipe.send((False, reason(error)))
        raise SystemExit(1) from error


def reason(error: BaseException) -> str:
    """An error in one sentence; ours speak for themselves.

    >>> reason(WaterjarError("no room")), reason(KeyError("x"))
    ('no room', "KeyError: 'x'")
    """
    return str(error) if isinstance(error, WaterjarError) else f"{type(error).__name__}: {error}"


def _quiet_when_stopped(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that falls into a finaliser, or a call from C, is printed and lost: say nothing, and try again."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGTERM, _interrupt)
    later = threading.Timer(_ONCE_MORE, os.kill, (os.getpid(), signal.SIGTERM))
    later.daemon = True
    later.start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: a second one would cut the tidying up short
    raise KeyboardInterrupt


def _stop_without(parent: int) -> None:
    """Stop this process when its parent is gone, killed for instance: nobody would take its result."""
    while os.getppid() == parent:
        time.sleep(_LOOK_UP)
    os.kill(os.getpid(), signal.SIGTERM)  # so that the run is marked as interrupted
    time.sleep(1.0)
    os._exit(1)
