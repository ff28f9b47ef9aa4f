"""Running a study: idempotent jobs on the executor that it declares, or on any concurrent.futures-like one.

A job is found by its run_id: sealed ones are passed over, begun ones go on from their checkpoint, changed ones are
other runs. Workers get a path to memory-mapped data, so that the images stand in memory once. Progress is read
from the runs themselves, so it works with any executor, also on other machines. Runs whose worker is lost are taken up
again (see `attempts`).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from waterjar.errors import BusyError, WaterjarError
from waterjar.lab import loop
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData, from_cache, load, to_cache
from waterjar.lab.study import kinds
from waterjar.lab.study.declaration import expand
from waterjar.lab.study.executors import Needs, Pool, open_pool
from waterjar.lab.study.job import Job, checkpoints_of
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.queue import Executor, ForeignPool, work_off
from waterjar.lab.study.remarks import notes
from waterjar.run.provenance import using_parts
from waterjar.run.resume import mend
from waterjar.run.root import NotARunError, read_root
from waterjar.run.store import BUSY, ROOT
from waterjar.run.study import Study, create_study, open_study

DATA = ".waterjar/data"
FILES = ".waterjar/executor"
"""Of the executor, in the study's folder."""
_LOG = logging.getLogger(__name__)


def plan(declaration: Declared, out: Path, data: ImageData) -> list[Job]:
    """The jobs of a study, each with its identity and place. Every config is laid over the data: faults show here."""
    check_place(out)
    kind = kinds.of(declaration.kind)
    jobs: dict[str, Job] = {}
    for config in expand(declaration):
        planned = kind.plan(config, data, declaration.resources)
        name = f"{planned.name}-{planned.run_id[:8]}"
        if planned.run_id in jobs:
            raise WaterjarError(f"the study declares one run twice: {name}. Leave out what is the same setting twice")
        mend(out / name)
        jobs[planned.run_id] = Job(declaration.kind, config, planned, out / name)
    kind.check([job.config for job in jobs.values()], data)
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
    only: Collection[str] | None = None,
    data: ImageData | None = None,
) -> Study:
    """Run what is not yet there, and open the declared runs; others that stand in `out` are left alone.

    `executor` runs the jobs; by default the one that the study declares. `watch` is called with the jobs every
    `poll_seconds` (and a last time with True). Runs that fail do not stop the others; they are named at the end. What
    `notes` has to say, before the first run and after the last, is logged as warnings. `only` these runs, by their
    run_id, are run; `data` that are at hand are not loaded again.
    """
    if declaration.resources.executor.name == "local":
        resolve_device(declaration.resources.device)  # other machines may have what this one has not
    data = load(declaration.data.name, **declaration.data.settings) if data is None else data
    jobs = [job for job in plan(declaration, out, data) if only is None or job.run_id in only]
    for note in notes(declaration):
        _LOG.warning("%s", note)
    told = declaration.model_dump(mode="json", exclude={"data": {"settings": {"path"}}})
    create_study(out, told, replace=True, runs=[job.path.name for job in jobs])
    cache = to_cache(data, out / DATA)
    del data
    waiting = [job for job in jobs if job.status != "sealed"]
    failed = _train(declaration, waiting, cache, executor, functools.partial(watch or _nobody, jobs), poll_seconds)
    # Another `waterjar run` on the same folder may have had a run under its lock, and sealed it since.
    failed = {job.path.name: failed[job.path.name] for job in waiting if job.path.name in failed and not job.is_sealed}
    if failed:
        raise _failed(failed, len(waiting), out)
    declared = {job.path.name for job in jobs}
    done = open_study(out).select(lambda entry: entry.name in declared)
    for note in notes(declaration, done):
        _LOG.warning("%s", note)
    return done


def _train(
    declaration: Declared,
    waiting: list[Job],
    cache: Path,
    executor: Executor | None,
    watch: Callable[[bool], None],
    poll_seconds: float,
) -> dict[str, str]:
    """Train what is left; returns name -> why of those that failed."""
    if not waiting:
        watch(True)
        return {}
    pool = _open(declaration, waiting, executor)
    settings = {**declaration.resources.model_dump(mode="json"), "workers": pool.runs_a_machine}
    calls = {
        job.path.name: (
            train_job,
            job.kind,
            job.config.model_dump(mode="json"),
            job.run_id,
            str(job.path.absolute()),
            str(cache.absolute()),
            str(checkpoints_of(job.path).absolute()),
            settings,
        )
        for job in waiting
    }
    places = [job.path.absolute() for job in waiting]
    try:
        failed = work_off(places, calls, pool, uuid.uuid4().hex, lambda: watch(False), poll_seconds)
    except KeyboardInterrupt:
        if pool.stopped:
            _LOG.warning("%s", pool.stopped)
        raise
    finally:
        pool.stop()
    watch(True)
    return failed


def _open(declaration: Declared, waiting: list[Job], executor: Executor | None) -> Pool:
    resources = declaration.resources
    if executor is not None:
        return ForeignPool(executor, resources.workers)
    folder = (waiting[0].path.parent / FILES).absolute()
    needs = Needs(resources.workers, folder, len(waiting), resources.threads, resources.device)
    return open_pool(resources.executor, needs)


def _nobody(jobs: list[Job], last: bool) -> None:
    """Nobody watches."""


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
    kind: str, config: dict[str, Any], run_id: str, path: str, cache: str, checkpoints: str, resources: dict[str, Any]
) -> str:
    """What a worker does: one run, from memory-mapped data, with its threads pinned."""
    place, folder = Path(path), Path(checkpoints)
    with using_parts({"kinds": [kind]}), threads(resources["threads"]):
        known, data = kinds.of(kind), from_cache(cache)
        illustrate = getattr(known, "illustrate", None)
        if illustrate is not None:
            illustrate(config, data, place.parent)
        trained = loop.train(
            lambda begun: known.experiment(config, data, resources, folder / "data", place if begun else None),
            place,
            run_id=run_id,
            checkpoints=folder,
            device=resolve_device(resources["device"]),
            checkpoint_seconds=resources["checkpoint_seconds"],
            keep=resources["checkpoint_frequency"],
        )
    return str(trained)


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads of torch, for as long as this lasts."""
    import torch  # noqa: PLC0415 - in the worker

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
