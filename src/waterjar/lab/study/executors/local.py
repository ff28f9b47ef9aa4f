"""Processes on this machine: a pool that outlives its workers, and whose workers do not outlive it.

`ProcessPoolExecutor` gives up on everything when one worker is killed, as the kernel does for want of memory. Here
each worker has a pipe of its own, so that a death names the call it interrupted, and the worker is replaced. The other
way round, a worker whose parent is gone stops within a few seconds. No threads on this side: whoever waits for results
calls `attend`. Where there are several GPUs, each worker sees one.
"""

from __future__ import annotations

import collections
import dataclasses
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.util import Finalize
from typing import Any

from pydantic import BaseModel, ConfigDict

from waterjar.errors import WaterjarError
from waterjar.lab.config import Count
from waterjar.lab.study.executors._gpus import gpu_of, visible
from waterjar.lab.study.executors._pool import LostWorkerError, Needs
from waterjar.lab.study.executors._worker import BEGUN, GRACE, READY, STOPPING, work

_GRACE = GRACE + 2.0  # seconds for a process to end by itself


class Settings(BaseModel):
    """How many processes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    workers: Count | None = None
    """Runs at a time; those of the study's `resources` unless told."""


def open_pool(settings: Settings, needs: Needs) -> LocalPool:
    """A pool of spawned processes."""
    return LocalPool(settings.workers or needs.workers, device=needs.device)


@dataclasses.dataclass
class _Call:
    future: Future[Any]
    fn: Callable[..., Any]
    args: tuple[Any, ...]


@dataclasses.dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    place: int
    """Which of the pool's workers it is, or stands in for."""
    ready: bool = False
    unbegun: bool = False
    """It was idle when it got its call, and has not said yet that it began."""
    leaving: bool = False
    """It has said its last word: a failure, or that it was told to stop."""
    call: _Call | None = None


class LocalPool:
    """At most `workers` spawned processes, each with one call at a time. Results come in during `attend`."""

    stopped = ""

    def __init__(self, workers: int, *, device: str = "cpu", first: int = 0) -> None:
        """`first` is the place of the first worker among those of this machine, for its GPU."""
        self.runs_a_machine = workers
        self._device = device
        self._first = first
        self._workers: list[_Worker] = []
        self._waiting: collections.deque[_Call] = collections.deque()
        # Workers may have processes of their own, so they are no daemons; whoever forgets `stop` must not hang at exit.
        Finalize(self, _end_all, (self._workers,), exitpriority=1)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Queue a call, behind the others."""
        call = _Call(Future(), fn, args)
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
            if not idle and len(self._workers) == self.runs_a_machine:
                return
            call = self._waiting.popleft()
            if not call.future.running() and not call.future.set_running_or_notify_cancel():
                continue
            worker = idle[0] if idle else self._start()
            try:
                worker.pipe.send((call.fn, call.args))
            except OSError:  # it died before: nobody's fault
                self._bury(worker)
                self._waiting.appendleft(call)
            else:
                worker.call, worker.unbegun = call, worker.ready

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        # A worker starts with the signals that stop a study blocked, until it can take them without a traceback; here
        # it means that no interrupt falls between the start of a process and its entry in the list.
        resource_tracker.ensure_running()  # it would lift the block while starting
        taken = {worker.place for worker in self._workers}
        place = next(place for place in range(self.runs_a_machine) if place not in taken)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            process = context.Process(target=work, args=(theirs, os.getpid()))
            with visible(gpu_of(self._first + place, self._device)):
                process.start()
            worker = _Worker(process, ours, place)
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

    def _hear(self, worker: _Worker, message: tuple[bool, Any, bool] | str) -> None:
        if isinstance(message, str):
            worker.ready |= message == READY
            worker.unbegun &= message != BEGUN
            return
        call, worker.call = worker.call, None
        assert call is not None
        worked, outcome, worker.leaving = message
        if worked:
            call.future.set_result(outcome)
        else:
            call.future.set_exception(WaterjarError(outcome))

    def _bury(self, worker: _Worker) -> None:
        """A worker is gone, and another one takes its place; so is its call, if it had one."""
        _see_off(worker.process, _GRACE)  # only then are its locks gone, too
        code = worker.process.exitcode or 0
        self._workers.remove(worker)
        worker.pipe.close()
        if worker.call is None:
            return
        if worker.unbegun:  # killed while idle, its end of the pipe open for a moment longer
            self._waiting.appendleft(worker.call)
            return
        if not worker.ready and code > 0:
            raise WaterjarError(
                f"a worker process ended with exit code {code} before it could begin; what it wrote to stderr says "
                'why. A script that runs a study needs its lines below `if __name__ == "__main__":`'
            )
        worker.call.future.set_exception(LostWorkerError(_cause(code)))


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
