"""Making runs again from their declaration, and whether they came out as they were sealed."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.lab.data import ImageData, from_cache, load
from waterjar.lab.study.declaration import declare
from waterjar.lab.study.job import Job
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.queue import Executor
from waterjar.lab.study.runner import DATA, plan, run
from waterjar.run.disk import write_file
from waterjar.run.ledger import DECLARATION
from waterjar.run.reader import Run, open_run
from waterjar.run.sameness import Sameness, compare_runs
from waterjar.run.study import open_study

PLACE = ".waterjar/reproduced"
"""Where runs are made again unless told otherwise, in the study's folder."""
MARK = ".waterjar/reproduced.txt"
"""In a folder that is for nothing else."""


def declaration_of(folder: Path) -> Declared:
    """What a study declares. A run that another program recorded has nothing that could make it again."""
    found = open_study(folder).declaration
    if "kind" not in found:
        raise WaterjarError(
            f"{folder} has no {DECLARATION} of the laboratory: only what `waterjar run` trained can be made again"
        )
    return declare(found, str(folder / DECLARATION))


def chosen(runs: Sequence[Run], share: float, seed: int) -> list[Run]:
    """A share of runs, at least one, drawn by their root hashes and a seed: the same ones for everybody.

    >>> chosen([], 0.1, 0)
    []
    """
    order = sorted(runs, key=lambda one: hashlib.sha256(f"{seed} {one.root_hash}".encode()).digest())
    kept = {one.path.name for one in order[: math.ceil(share * len(order) - 1e-9)]}
    return [one for one in runs if one.path.name in kept]


def reproduce(
    runs: Sequence[Run],
    declaration: Declared,
    out: Path,
    *,
    path: str | None = None,
    tolerance: float = 0.01,
    watch: Callable[[list[Job], bool], None] | None = None,
    executor: Executor | None = None,
) -> dict[str, Sameness]:
    """Train runs of one study again, in `out`, and compare each with what was sealed; name -> what was found.

    What was made there before and sealed is made anew; what was interrupted goes on. The data are those of the study's
    own copy, if it still has their fingerprint, else they are loaded as declared, from `path` if it is given.
    """
    for one in runs:
        if one.root_hash is None:
            raise WaterjarError(f"{one.path} is {one.status}: only a sealed run can be compared with its seal")
    folder = runs[0].path.parent
    _claim(out)
    data = data_of(folder, declaration, runs, path)
    jobs = {job.run_id: job.path for job in plan(declaration, out, data)}
    for one in runs:
        if one.run_id not in jobs:
            raise WaterjarError(
                f"{one.path} is none of the runs that {folder / DECLARATION} declares: the file, or what trains by it, "
                "has changed since"
            )
        _clear(jobs[one.run_id])
    run(declaration, out, only={one.run_id for one in runs}, data=data, watch=watch, executor=executor)
    return {one.path.name: compare_runs(one, open_run(jobs[one.run_id]), tolerance) for one in runs}


def data_of(folder: Path, declaration: Declared, runs: Sequence[Run], path: str | None) -> ImageData:
    """The data of some runs of a study: its own copy, or loaded again, from `path` if it is given."""
    prints = {str(one.attributes["data_fingerprint"]) for one in runs}
    if len(prints) > 1:
        raise WaterjarError(f"{folder}: its runs were trained on different data: take them one by one")
    (wanted,) = prints
    copy = folder / DATA / f"{declaration.data.name}-{wanted[:16]}"
    if path is None and copy.is_dir():
        return from_cache(copy)
    settings: dict[str, Any] = {**declaration.data.settings, **({} if path is None else {"path": path})}
    found = load(declaration.data.name, **settings)
    if found.fingerprint != wanted:
        raise WaterjarError(
            f"the data are not those that {runs[0].path.name} was trained on: fingerprint {found.fingerprint[:16]}, "
            f"recorded {wanted[:16]}"
        )
    return found


def _claim(out: Path) -> None:
    """Take a folder for runs that are made again. One with anything in it that was not made here is refused."""
    mark = out / MARK
    if out.exists() and not mark.is_file() and (not out.is_dir() or any(out.iterdir())):
        raise WaterjarError(
            f"{out} holds something else, which training again could overwrite: choose a folder of its own"
        )
    write_file(mark, "runs that `waterjar reproduce` trained again; it deletes them as it likes\n")


def _clear(place: Path) -> None:
    """Remove a run that was made again before: it proves nothing now."""
    try:
        if open_run(place).status != "sealed":
            return
    except WaterjarError:
        if not place.exists():
            return
    shutil.rmtree(place)
