"""Processes of a dask cluster: one whose scheduler's address is given, or one that is started here and ended again.

A call runs in a process of its own beside the dask worker that it was given to, so that it can be told to stop, sees
one GPU, and leaves nothing behind; the process ends when its dask worker does. As many calls go on at a time in a dask
worker as it has threads: start workers with one (`dask worker --nthreads 1`).
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import logging
import multiprocessing
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError, missing_extra
from waterjar.lab.config import Count
from waterjar.lab.study.executors._pool import LostWorkerError, Needs, Told, reason, settle, told
from waterjar.lab.study.executors.local import LocalPool

_PATIENCE = 30.0  # seconds for a scheduler to answer
_ENDINGS = ("finished", "error", "lost", "cancelled")
_LOOK_AGAIN = 5.0  # seconds between two looks at the workers of a cluster of ours
_GRACE = 10.0  # seconds for calls under way to come to a checkpoint


class Settings(BaseModel):
    """Which cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    scheduler: Annotated[str, Field(min_length=1)] | None = None
    """The address of a scheduler, such as tcp://10.0.0.1:8786; a cluster on this machine is started unless told."""
    workers: Count | None = None
    """Runs at a time, and workers of a cluster that is started; those of the study's `resources` unless told."""


def open_pool(settings: Settings, needs: Needs) -> DaskPool:
    """Connect to a cluster, or start one."""
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_extra("distributed", "dask", "runs on dask") from error
    workers = settings.workers or needs.workers
    cluster = None
    ours = contextlib.ExitStack()
    if settings.scheduler is None:
        cluster = ours.enter_context(_local_cluster(min(workers, needs.calls)))
    try:
        client = distributed.Client(cluster or settings.scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise WaterjarError(
            f"executor dask: no scheduler answers at {settings.scheduler} within {_PATIENCE:.0f} s ({error}): expected "
            "the address of a running one, such as tcp://10.0.0.1:8786"
        ) from error
    return DaskPool(client, cluster, ours, workers, needs.device)


@contextlib.contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    """Worker processes with one thread each, and no say in memory or in how often a call is tried."""
    import dask  # noqa: PLC0415
    import distributed  # noqa: PLC0415

    settings = {
        "distributed.scheduler.allowed-failures": 0,  # whoever counts wants to hear of each
        "distributed.deploy.lost-worker-timeout": "5 minutes",  # a busy machine takes long to start another process
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        ) as cluster,
    ):
        yield cluster


class DaskPool:
    """At most `workers` calls at a time on a cluster; the others wait here."""

    stopped = "the runs under way on the dask cluster were told to stop behind a checkpoint; the others are not queued"

    def __init__(self, client: Any, cluster: Any, ours: contextlib.ExitStack, workers: int, device: str) -> None:
        """`cluster` is None unless it was started here; `ours` ends it."""
        self.runs_a_machine = workers
        self._client = client
        self._cluster = cluster
        self._ours = ours
        self._device = device
        self._started = 0 if cluster is None else len(cluster.workers)
        self._looked = time.monotonic()
        self._session = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._waiting: collections.deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = collections.deque()
        self._running: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Queue a call, behind the others."""
        future: Future[Any] = Future()
        self._waiting.append((future, fn, args))
        return future

    def attend(self, seconds: float) -> None:
        """Hand out calls and take in results, so long or until something has ended."""
        end = time.monotonic() + seconds
        self._replace_workers()
        self._hand_out()
        while not self._take_in() and self._running and time.monotonic() < end:
            time.sleep(0.05)
        self._hand_out()

    def stop(self) -> None:
        """Tell calls under way to come to a checkpoint, wait for that, and leave the cluster."""
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):  # of a cluster that is gone
            # Not on the workers' own threads: those are busy with what is to be stopped.
            self._client.run(_end_session, self._session, on_error="ignore")
            end = time.monotonic() + _GRACE
            while self._running and time.monotonic() < end:
                self._take_in()
                time.sleep(0.05)
            self._client.cancel(list(self._running.values()), force=True)
        self._running.clear()
        self._waiting.clear()
        self._client.close()
        self._ours.close()

    def _replace_workers(self) -> None:
        """Start workers anew that a cluster of ours has given up; it does when one takes long to come back."""
        if self._cluster is not None and time.monotonic() - self._looked > _LOOK_AGAIN:
            self._looked = time.monotonic()
            if len(self._cluster.workers) < self._started:
                self._cluster.scale(self._started)

    def _hand_out(self) -> None:
        while self._waiting and len(self._running) < self.runs_a_machine:
            future, fn, args = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                key = f"waterjar-{self._session}-{next(self._numbers)}"
                self._running[future] = self._client.submit(
                    _beside_worker, self._session, self._device, fn, args, key=key, pure=False
                )

    def _take_in(self) -> bool:
        """Results of what has ended; whether anything has."""
        ended = [future for future, there in self._running.items() if there.status in _ENDINGS]
        for future in ended:
            there = self._running.pop(future)
            settle(future, _told_of(there))
            there.release()
        return bool(ended)


def _told_of(there: Any) -> Told:
    """What became of a call, as far as dask knows."""
    import distributed  # noqa: PLC0415

    if there.status == "finished":
        found: Told = there.result()
        return found
    error = there.exception() if there.status == "error" else None
    if error is None or isinstance(error, distributed.KilledWorker):
        return "lost", "a dask worker is gone"
    return "raised", reason(error)


_ENDED: set[str] = set()  # sessions whose study has ended, in a dask worker
_POOLS: dict[int, LocalPool] = {}  # by thread of a dask worker
_BUSY: set[int] = set()  # threads whose pool is in use
_LOCK = threading.Lock()


def _beside_worker(session: str, device: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Told:
    """In a dask worker: the call in a process beside it."""
    return told(_in_own_process, (session, device, fn, args))


def _in_own_process(session: str, device: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The call in a process of its own, which is kept for the next one."""
    from distributed import get_worker  # noqa: PLC0415

    name, thread = str(get_worker().name), threading.get_ident()
    with _LOCK:
        if session in _ENDED:
            raise LostWorkerError("the study has ended")
        if thread not in _POOLS:
            # A dask worker is a daemon process, and multiprocessing allows those no children; ours end with it.
            multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
            _POOLS[thread] = LocalPool(1, device=device, first=int(name) if name.isdecimal() else 0)
        pool = _POOLS[thread]
        _BUSY.add(thread)
    try:
        future = pool.submit(fn, *args)
        while not future.done():
            pool.attend(0.5)
            if session in _ENDED:
                pool.stop()
                raise LostWorkerError("the study has ended")
        return future.result()
    finally:
        with _LOCK:
            _BUSY.discard(thread)


def _end_session(session: str) -> None:
    """In a dask worker: end the processes of a study that is over; those in use are ended by their threads."""
    with _LOCK:
        _ENDED.add(session)
        for thread in [thread for thread in _POOLS if thread not in _BUSY]:
            _POOLS.pop(thread).stop()
