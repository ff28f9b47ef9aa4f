"""A study of many small runs on an executor that keeps losing its workers: all complete, none twice, same contents.

    python bench/executors.py dask                     # kill -9 of a worker (dask's, or the training beside it)
    python bench/executors.py local
    python bench/executors.py slurm --partition low --preempt high    # Slurm's own pre-emption
    python bench/executors.py stand-in                 # submitit's local executor, SIGTERM

The same study is run in this process first; what is compared are the contents that the runs were sealed with, which
leave out resources and provenance.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from waterjar.lab import study
from waterjar.lab.study import Job, declare
from waterjar.run.study import Study

CONTENT: dict[str, Any] = {
    "kind": "einstellung",
    "data": {
        "name": "glyphs",
        "settings": {"alphabets": 4, "characters": 2, "train_per_class": 24, "test_per_class": 8},
    },
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": ["sgd"],
    "scenarios": ["sequential"],
    "tasks": {"t1_superclasses": [0, 1], "t2_superclasses": [2, 3], "shortcut_superclasses": [2]},
    "training": {"epochs_t1": 20, "epochs_t2": 20, "batch_size": 8},
}


class Serial:
    """Runs a call when it is submitted."""

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


class Trouble:
    """Every so often, something happens to a worker that is at a run."""

    def __init__(self, every: float, most: int, how: str, preempt: str) -> None:
        self.hits: list[str] = []
        self._every = every
        self._left = most
        self._how = how
        self._preempt = preempt
        self._next = time.monotonic() + every
        self._dice = random.Random(0)

    def __call__(self, jobs: list[Job], last: bool) -> None:
        if last or not self._left or time.monotonic() < self._next:
            return
        at_work = {job.path.name: pid for job in jobs if (pid := writer(job.path)) is not None}
        if not at_work:
            return
        self._next = time.monotonic() + self._every
        self._left -= 1
        if self._how == "preempt":
            wide = ["sbatch", "--partition", self._preempt, "--ntasks", "8", "--output", "/dev/null"]
            subprocess.run([*wide, "--wrap", "sleep 1"], check=True, capture_output=True)
            self.hits += at_work
            return
        name = self._dice.choice(sorted(at_work))
        pid = at_work[name]
        if self._how == "kill" and self._dice.random() < 0.5:
            above = parent(pid)
            pid = above if above != os.getpid() else pid  # dask's worker, not the study
        os.kill(pid, signal.SIGKILL if self._how == "kill" else signal.SIGTERM)
        self.hits.append(name)


def writer(run: Path) -> int | None:
    """The living process that writes a run."""
    try:
        pid = int((run / ".waterjar" / "lock").read_text())
        return pid if Path(f"/proc/{pid}").exists() and pid != os.getpid() else None
    except (OSError, ValueError):
        return None


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def contents(found: Study) -> dict[str, str]:
    return {run.path.name: run.attributes["seal"]["content"] for run in found}


def sessions(found: Study) -> dict[str, list[dict[str, Any]]]:
    return {run.path.name: run.attributes["provenance"]["sessions"] for run in found}


def overlapping(all_of_run: list[dict[str, Any]]) -> bool:
    """Whether a session of a run began before the one before it had ended; one that was killed has no end."""
    pairs = itertools.pairwise(all_of_run)
    return any(after["started"] < before.get("ended", before["started"]) for before, after in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executor", choices=["local", "dask", "slurm", "stand-in"])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two troubles")
    parser.add_argument("--most", type=int, default=1000, help="troubles altogether: a slow machine would not get far")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--partition")
    parser.add_argument("--preempt", default="high", help="a partition whose jobs pre-empt those of the other")
    parser.add_argument("--folder", type=Path, help="for the studies; must be seen by all workers")
    parser.add_argument("--study", type=Path, help="go on with a study that was begun in trouble")
    parser.add_argument("--serial", type=Path, help="where the study was run in one process before")
    given = parser.parse_args()
    chosen: dict[str, Any] = {"name": given.executor, "workers": given.workers}
    if given.executor == "stand-in":
        chosen |= {"name": "slurm", "cluster": "local"}
    elif given.partition:
        chosen["partition"] = given.partition
    how = {"slurm": "preempt", "stand-in": "terminate"}.get(given.executor, "kill")
    content = {**CONTENT, "seeds": list(range(1, given.runs + 1))}
    content["resources"] = {"device": "cpu", "checkpoint_seconds": 0.5, "executor": chosen}
    folder = Path(tempfile.mkdtemp(prefix="waterjar-executors-", dir=given.folder))
    began = time.monotonic()
    whole = study.run(declare(content), given.serial or folder / "serial", executor=Serial())
    took = time.monotonic() - began
    trouble = Trouble(given.every, given.most, how, given.preempt)
    began = time.monotonic()
    found = study.run(declare(content), given.study or folder / "troubled", watch=trouble, poll_seconds=0.2)
    all_sessions = sessions(found)
    print(
        json.dumps(
            {
                "executor": chosen,
                "runs": len(found),
                "seconds_serial": round(took, 1),
                "seconds_troubled": round(time.monotonic() - began, 1),
                "trouble": how,
                "hits_of_running_runs": len(trouble.hits),
                "runs_hit": len(set(trouble.hits)),
                "sessions": sum(map(len, all_sessions.values())),
                "most_sessions_of_a_run": max(map(len, all_sessions.values())),
                "runs_with_overlapping_sessions": sum(map(overlapping, all_sessions.values())),
                "contents_equal": contents(found) == contents(whole),
            },
            indent=1,
        )
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
