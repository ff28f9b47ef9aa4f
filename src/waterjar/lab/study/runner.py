"""Running a study: idempotent jobs on any concurrent.futures-like executor.

A job is found by its run_id: sealed ones are passed over, begun ones go on from their checkpoint, changed ones are
other runs. Workers get a path to memory-mapped data, so that the images stand in memory once. Progress is read
from the runs themselves, so it works with any executor, also on other machines. The default is a pool of processes
that replaces workers that were killed (see `local_pool`); with another executor that is the executor's business.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import Any, Protocol

from waterjar.errors import BusyError, WaterjarError
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData, from_cache, load, to_cache
from waterjar.lab.study import kinds
from waterjar.lab.study.declaration import expand
from waterjar.lab.study.job import Job, checkpoints_of
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.local_pool import LocalPool, reason
from waterjar.lab.study.remarks import notes
from waterjar.run.provenance import using_parts
from waterjar.run.resume import mend
from waterjar.run.root import NotARunError, read_root
from waterjar.run.store import BUSY, ROOT
from waterjar.run.study import Study, create_study, open_study

DATA = ".waterjar/data"
_LOG = logging.getLogger(__name__)


class Future(Protocol):
    """What is needed of a future."""

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def exception(self) -> BaseException | None:
        """What ended it, if it failed."""
        ...

    def cancel(self) -> Any:
        """Do not start it any more."""
        ...


class Executor(Protocol):
    """What is needed of an executor: a process pool has it, so does dask's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Start a call some time."""
        ...


def plan(declaration: Declared, out: Path, data: ImageData) -> list[Job]:
    """The jobs of a study, each with its identity and place. Every config is laid over the data: faults show here."""
    check_place(out)
    kind = kinds.of(declaration.kind)
    jobs: dict[str, Job] = {}
    for config in expand(declaration):
        laid = kind.lay_out(config, data, declaration.resources)
        name = f"{laid.name}-{laid.run_id[:8]}"
        if laid.run_id in jobs:
            raise WaterjarError(f"the study declares one run twice: {name}. Leave out what is the same setting twice")
        mend(out / name)
        jobs[laid.run_id] = Job(declaration.kind, config, laid, out / name)
    kind.try_out([job.config for job in jobs.values()], data)
    return list(jobs.values())


def check_place(out: Path) -> None:
    """Refuse a folder that cannot be made, and one that is a run or within one: runs are not written to again."""
    place = out.resolve()
    for folder in (place, *place.parents):
        try:
            if folder.exists() and not folder.is_dir():
                raise WaterjarError(f"{out} cannot hold a study: {folder} is a file, not a folder")
            if not (folder / ROOT).is_file():
                continue
            read_root(folder)
        except NotARunError:
            continue  # somebody's Zarr group, not ours
        except OSError as error:
            raise WaterjarError(f"{out} cannot hold a study: {error.strerror}: {folder}") from error
        inside = "is a run" if folder == place else f"is inside the run {folder}"
        raise WaterjarError(f"{out} {inside}: a study needs a folder beside the runs, such as {folder.parent}")


def run(
    declaration: Declared,
    out: Path,
    *,
    executor: Executor | None = None,
    watch: Callable[[list[Job], bool], None] | None = None,
    poll_seconds: float = 0.5,
) -> Study:
    """Run what is not yet there, and open the declared runs; others that stand in `out` are left alone.

    `executor` runs the jobs; by default a pool of spawned processes. `watch` is called with the jobs every
    `poll_seconds` (and a last time with True). Runs that fail do not stop the others; they are named at the end. What
    `notes` has to say, before the first run and after the last, is logged as warnings.
    """
    resolve_device(declaration.resources.device)
    data = load(declaration.data.name, **declaration.data.settings)
    jobs = plan(declaration, out, data)
    for note in notes(declaration):
        _LOG.warning("%s", note)
    told = declaration.model_dump(mode="json", exclude={"data": {"settings": {"path"}}})
    create_study(out, told, replace=True, runs=[job.path.name for job in jobs])
    cache = to_cache(data, out / DATA)
    del data
    waiting = [job for job in jobs if job.status != "sealed"]
    pool = LocalPool(min(declaration.resources.workers, len(waiting))) if executor is None else None
    futures: dict[str, Future] = {}
    failed: dict[str, str] = {}
    try:
        for job in waiting:
            name, settings = job.path.name, declaration.resources.model_dump(mode="json")
            place = str(checkpoints_of(job.path))
            call = (job.kind, job.config.model_dump(mode="json"), str(job.path), str(cache), place, settings)
            try:
                futures[name] = _submit(pool, executor, name, call)
            except BrokenExecutor as error:  # while the first ones ran already
                failed[name] = _reason(error)
        while not all(future.done() for future in futures.values()):
            if watch is not None:
                watch(jobs, False)
            if pool is not None:
                pool.attend(poll_seconds)
            else:
                time.sleep(poll_seconds)
    except BaseException:
        for future in futures.values():
            future.cancel()
        raise
    finally:
        if pool is not None:
            pool.stop()
    if watch is not None:
        watch(jobs, True)
    failed |= _failures(futures)
    # Another `waterjar run` on the same folder may have had a run under its lock, and sealed it since.
    failed = {job.path.name: failed[job.path.name] for job in waiting if job.path.name in failed and not job.is_sealed}
    if failed:
        raise _failed(failed, len(waiting), out)
    declared = {job.path.name for job in jobs}
    done = open_study(out).select(lambda entry: entry.name in declared)
    for note in notes(declaration, done):
        _LOG.warning("%s", note)
    return done


def _submit(pool: LocalPool | None, executor: Executor | None, name: str, call: tuple[Any, ...]) -> Future:
    if executor is not None:
        return executor.submit(train_job, *call)
    assert pool is not None
    return pool.submit(train_job, *call, name=name)


def _failures(futures: dict[str, Future]) -> dict[str, str]:
    failed = {}
    for name, future in futures.items():
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is not None:
            failed[name] = _reason(error)
    return failed


def _reason(error: BaseException) -> str:
    if isinstance(error, BrokenExecutor):
        return (
            f"{type(error).__name__}: the executor lost a worker process, most likely for want of memory, and gave up "
            "all runs under way. The default one, without `executor`, replaces such workers"
        )
    return reason(error)


def _failed(failed: dict[str, str], asked: int, out: Path) -> WaterjarError:
    busy = [name for name, why in failed.items() if BUSY in why]
    listing = "\n".join(f"  {name}: {why}" for name, why in failed.items())
    if len(busy) == len(failed):
        return BusyError(
            f"another process is writing {len(busy)} of {asked} runs in {out}, and goes on with them; "
            f"{asked - len(failed)} are complete:\n{listing}\n"
            "Nothing failed. When the other is done, or stopped, the same command goes on with what is left"
        )
    return WaterjarError(
        f"{len(failed)} of {asked} runs failed, {asked - len(failed)} are complete in {out}:\n{listing}\n"
        "Run the same command again to go on with those that failed, from their checkpoints"
    )


def train_job(
    kind: str, config: dict[str, Any], path: str, cache: str, checkpoints: str, resources: dict[str, Any]
) -> str:
    """What a worker does: one run, from memory-mapped data, with its threads pinned."""
    import torch  # noqa: PLC0415 - in the worker

    before = torch.get_num_threads()
    torch.set_num_threads(resources["threads"])
    try:
        with using_parts({"kinds": [kind]}):
            trained = kinds.of(kind).train(config, from_cache(cache), Path(path), Path(checkpoints), resources)
    finally:
        torch.set_num_threads(before)
    return str(trained)
