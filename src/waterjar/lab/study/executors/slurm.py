"""Jobs of a Slurm cluster, submitted as arrays through submitit.

Every call is a job; one that is pre-empted (SIGTERM) or about to reach its time limit (SIGUSR2) comes to a checkpoint
and ends, and goes back into the queue here. So Slurm is asked not to requeue by itself: there is one queue. Whether a
job is still there is asked of `squeue`, which needs no accounting. Submitit was chosen over executorlib because it
submits arrays, has a local stand-in for tests, and needs no more than cloudpickle.
"""

from __future__ import annotations

import collections
import logging
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError, missing_extra
from waterjar.lab import stopping
from waterjar.lab.config import Count, Number
from waterjar.lab.study.executors._pool import Needs, Told, settle, told

_GRACE = 20.0  # seconds for a training to come to a checkpoint; Slurm's own KillWait is 30
_ASK_EVERY = 5.0  # seconds between two looks at the queue
_GONE = 30.0  # seconds that a job is not in the queue, until its result cannot be on its way through a file system
_LOG = logging.getLogger(__name__)


class Settings(BaseModel):
    """What is asked of Slurm."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    time: Count = 60
    """Minutes of one job. A run that needs more goes on in another job."""
    gpus: Number = 0
    """GPUs of one job; a run uses one."""
    cpus: Count | None = None
    """Cores of one job; `resources.threads` unless told."""
    memory: Annotated[float, Field(gt=0.0)] | None = None
    """Gigabytes of one job; as the cluster has it unless told."""
    workers: Count | None = None
    """Jobs at a time; `resources.workers` unless told."""
    array: Count = 1000
    """Jobs of one array at most; clusters have a limit (MaxArraySize)."""
    setup: tuple[str, ...] = ()
    """Lines of shell before a job, such as "module load cuda"."""
    options: dict[str, str | int | bool] = Field(default_factory=dict)
    """Further options of sbatch, such as {constraint: a100}."""
    warning: Count = 120
    """Seconds before the time limit at which a job is told to come to a checkpoint."""
    cluster: Literal["slurm", "local"] = "slurm"
    """`local` runs the jobs as processes here: to try a file out without a cluster."""


def open_pool(settings: Settings, needs: Needs) -> SlurmPool:
    """Jobs come later; what submitit or the machine lacks shows now."""
    try:
        import submitit  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_extra("submitit", "slurm", "runs on slurm") from error
    name = f"waterjar-{uuid.uuid4().hex[:12]}"
    workers = settings.workers or needs.workers
    folder = needs.folder / "slurm"
    try:
        executor = submitit.AutoExecutor(folder / "%j", cluster=settings.cluster)
        executor.update_parameters(**_parameters(settings, needs.threads, name, workers))
    except (RuntimeError, ValueError, OSError) as error:
        raise WaterjarError(f"executor slurm: {error}. Expected a machine from which sbatch submits jobs") from error
    return SlurmPool(executor, settings, name, workers)


def _parameters(settings: Settings, threads: int, name: str, workers: int) -> dict[str, Any]:
    """What submitit is told; of the local stand-in only what it knows."""
    given: dict[str, Any] = {
        "name": name,
        "timeout_min": settings.time,
        "gpus_per_node": settings.gpus,
        "cpus_per_task": settings.cpus or threads,
        "mem_gb": settings.memory,
        "slurm_partition": settings.partition,
        "slurm_account": settings.account,
        "slurm_qos": settings.qos,
        "slurm_array_parallelism": workers,
        "slurm_signal_delay_s": settings.warning,
        "slurm_setup": list(settings.setup) or None,
        "slurm_additional_parameters": {"no-requeue": True, **settings.options},
    }
    return {key: value for key, value in given.items() if value is not None and (key != "gpus_per_node" or value)}


class _Submitted:
    """A job, and since when it is not in the queue."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.missing: float | None = None


class SlurmPool:
    """Calls as jobs: those that come together are an array."""

    runs_a_machine = 1
    stopped = "the jobs of this study were cancelled (scancel); their runs stop behind a checkpoint"

    def __init__(self, executor: Any, settings: Settings, name: str, workers: int) -> None:
        self._executor = executor
        self._settings = settings
        self._name = name
        self._workers = workers
        self._waiting: collections.deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = collections.deque()
        self._running: dict[Future[Any], _Submitted] = {}
        self._asked = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Queue a call, behind the others."""
        future: Future[Any] = Future()
        self._waiting.append((future, fn, args))
        return future

    def attend(self, seconds: float) -> None:
        """Submit jobs and take in results, so long or until something has ended."""
        end = time.monotonic() + seconds
        self._hand_out()
        while not self._take_in() and self._running and time.monotonic() < end:
            time.sleep(min(0.2, max(0.0, end - time.monotonic())))
        self._hand_out()

    def stop(self) -> None:
        """Cancel the jobs, and wait until they are gone: a run stops behind a checkpoint."""
        for submitted in self._running.values():
            if self._settings.cluster == "local":
                submitted.job.cancel(check=False)
        if self._running and self._settings.cluster == "slurm":
            _command(["scancel", "--name", self._name])
        end = time.monotonic() + _GRACE + 10.0
        while any(self._is_there()) and time.monotonic() < end:
            time.sleep(0.5)
        self._running.clear()
        self._waiting.clear()

    def _hand_out(self) -> None:
        local = self._settings.cluster == "local"
        room = self._workers - len(self._running) if local else self._settings.array  # an array keeps to it by itself
        calls: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        while self._waiting and len(calls) < room:
            future, fn, args = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                calls.append((future, fn, args))
        if not calls:
            return
        try:
            with self._executor.batch():
                jobs = [self._executor.submit(_in_job, fn, args) for _, fn, args in calls]
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise WaterjarError(f"executor slurm: sbatch did not take the jobs: {error}") from error
        self._running |= {call[0]: _Submitted(job) for call, job in zip(calls, jobs, strict=True)}

    def _take_in(self) -> bool:
        ended = 0
        gone = self._gone()
        for future, submitted in list(self._running.items()):
            if submitted.job.paths.result_pickle.exists():
                del self._running[future]
                settle(future, submitted.job.result())
            elif future in gone:
                del self._running[future]
                settle(future, ("lost", f"job {submitted.job.job_id} ended without a word"))
            else:
                continue
            ended += 1
        return ended > 0

    def _gone(self) -> set[Future[Any]]:
        """Jobs that are no longer in the queue, and have had time for a last word."""
        now = time.monotonic()
        if now - self._asked < _ASK_EVERY and self._settings.cluster == "slurm":
            return set()
        self._asked = now
        found = set()
        patience = _GONE if self._settings.cluster == "slurm" else 0.0
        for (future, submitted), there in zip(list(self._running.items()), self._is_there(), strict=True):
            if there:
                submitted.missing = None
            elif submitted.missing is None:
                submitted.missing = now
            if submitted.missing is not None and now - submitted.missing >= patience:
                found.add(future)
        return found

    def _is_there(self) -> list[bool]:
        """Whether each job is in the queue; all are while the queue cannot be asked."""
        jobs = [submitted.job for submitted in self._running.values()]
        if self._settings.cluster == "local":
            return [not job.done() for job in jobs]
        answer = _command(["squeue", "--noheader", "--array", "--format", "%i", "--name", self._name])
        known = None if answer is None else set(answer.split())
        return [known is None or job.job_id in known for job in jobs]


def _command(words: list[str]) -> str | None:
    """What a program of Slurm's says; None, and a warning, if it does not."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        _LOG.warning("%s did not answer (%s); it is asked again", words[0], said)
        return None


def _in_job(fn: Callable[..., Any], args: tuple[Any, ...]) -> Told:
    """In the job: the call. Submitit's own handlers would pass over SIGTERM."""
    stopping.install(_GRACE, signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)
    return told(fn, args)
