"""Running a study: idempotent jobs on any concurrent.futures-like executor.

A job is found by its run_id: sealed ones are passed over, begun ones go on from their checkpoint, changed ones are
other runs. Workers get a path to memory-mapped data, so that the images stand in memory once. Progress is read
from the runs themselves, so it works with any executor, also on other machines. The default is a pool of processes
that replaces workers that were killed (see `local_pool`); with another executor that is the executor's business.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import networks
from waterjar.lab.augmentation import epoch_parameters
from waterjar.lab.config import RunConfig, resolve_device
from waterjar.lab.data import ImageData, from_cache, load, to_cache
from waterjar.lab.scenarios import phases
from waterjar.lab.shortcuts import random_region
from waterjar.lab.study.declaration import Declaration, expand
from waterjar.lab.study.local_pool import LocalPool, reason
from waterjar.lab.tasks import TASKS, arrange
from waterjar.lab.trainer import run_id_of
from waterjar.run.root import NotARunError, read_root
from waterjar.run.store import ROOT
from waterjar.run.study import Study, create_study, open_study

DATA = ".waterjar/data"
CHECKPOINTS = ".waterjar/checkpoints"


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


@dataclasses.dataclass(frozen=True)
class Job:
    """One run that a study wants."""

    config: RunConfig
    run_id: str
    path: Path
    images: int
    """Training images it will have seen at its end."""

    @property
    def status(self) -> str:
        """`todo`, `recording`, `interrupted` or `sealed`, as the disk says."""
        return str(read_root(self.path)["attributes"]["status"]) if (self.path / ROOT).exists() else "todo"

    @property
    def is_sealed(self) -> bool:
        """Whether it is complete; a damaged one is not."""
        try:
            return self.status == "sealed"
        except WaterjarError:
            return False

    @property
    def epochs(self) -> int:
        """How many epochs it trains."""
        lengths = self.config.training
        return lengths.epochs_t2 + (lengths.epochs_t1 if self.config.scenario == "sequential" else 0)


def plan(declaration: Declaration, out: Path, data: ImageData) -> list[Job]:
    """The jobs of a study, each with its identity and place. Every config is laid over the data: faults show here."""
    check_place(out)
    jobs: dict[str, Job] = {}
    for config in expand(declaration):
        images = sum(phase.epochs * len(phase.rows) for phase in phases(arrange(data, config), config))
        run_id = run_id_of(config, data.fingerprint)
        name = f"{config.scenario}-{config.learner}-{config.backbone}-{config.seed}-{run_id[:8]}"
        if run_id in jobs:
            raise WaterjarError(f"the study declares one run twice: {name}. Leave out what is the same setting twice")
        jobs[run_id] = Job(config, run_id, out / name, images)
    _try_out(list(jobs.values()), data)
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


def _try_out(jobs: list[Job], data: ImageData) -> None:
    """Build what every kind of run is made of, so that a fault shows now and not in a worker an hour later."""
    tried = set()
    for job in jobs:
        config = job.config
        kind = repr(config.model_copy(update={"seed": 0}))
        if kind in tried:
            continue
        tried.add(kind)
        experiment = arrange(data, config)
        shape = (3, *data.image_size)
        network = networks.build(
            config.backbone, n_classes=experiment.n_classes, image_shape=shape, seed=0, **config.backbone_settings
        )
        for layer in config.recording.features:
            if layer not in network.layer_names:
                raise unknown_name("recording.features: layer", layer, network.layer_names)
        one = np.asarray(data.test_index)[:1]
        random_region(experiment.shortcut, one, "test")
        for task in TASKS:
            epoch_parameters(getattr(config.augmentation, task), 0, task, 0, one, image_size=data.image_size)


def run(
    declaration: Declaration,
    out: Path,
    *,
    executor: Executor | None = None,
    watch: Callable[[list[Job], bool], None] | None = None,
    poll_seconds: float = 0.5,
) -> Study:
    """Run what is not yet there, and open the declared runs; others that stand in `out` are left alone.

    `executor` runs the jobs; by default a pool of spawned processes. `watch` is called with the jobs every
    `poll_seconds` (and a last time with True). Runs that fail do not stop the others; they are named at the end.
    """
    resolve_device(declaration.resources.device)
    data = load(declaration.data.name, **declaration.data.settings)
    jobs = plan(declaration, out, data)
    create_study(out, declaration.model_dump(mode="json", exclude={"data": {"settings": {"path"}}}), replace=True)
    cache = to_cache(data, out / DATA)
    from_cache(cache, verify=True)  # a copy that was there before may have changed since
    del data
    waiting = [job for job in jobs if job.status != "sealed"]
    pool = LocalPool(min(declaration.resources.workers, len(waiting))) if executor is None else None
    futures: dict[str, Future] = {}
    failed: dict[str, str] = {}
    try:
        for job in waiting:
            name, settings = job.path.name, declaration.resources.model_dump(mode="json")
            place = str(out / CHECKPOINTS / name)
            call = (job.config.model_dump(mode="json"), str(job.path), str(cache), place, settings)
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
    return open_study(out).select(lambda entry: entry.name in declared)


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
    listing = "\n".join(f"  {name}: {why}" for name, why in failed.items())
    return WaterjarError(
        f"{len(failed)} of {asked} runs failed, {asked - len(failed)} are complete in {out}:\n{listing}\n"
        "Run the same command again to go on with those that failed, from their checkpoints"
    )


def train_job(config: dict[str, Any], path: str, cache: str, checkpoints: str, resources: dict[str, Any]) -> str:
    """What a worker does: one run, from memory-mapped data, with its threads pinned."""
    import torch  # noqa: PLC0415 - in the worker

    from waterjar.lab.trainer import train  # noqa: PLC0415

    before = torch.get_num_threads()
    torch.set_num_threads(resources["threads"])
    try:
        trained = train(
            RunConfig.model_validate(config),
            from_cache(cache),
            Path(path),
            checkpoints=Path(checkpoints),
            device=resources["device"],
            checkpoint_seconds=resources["checkpoint_seconds"],
        )
    finally:
        torch.set_num_threads(before)
    return str(trained)
