"""kill -9 of a study's workers, and of the study itself: all runs end with the bits of an undisturbed study."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml

from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

import waterjar
from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.lab import study
from waterjar.lab.study import Declared, Job, declare
from waterjar.lab.study.attempts import FOLDER

pytestmark = pytest.mark.torch

CONTENT: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1],
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": ["sgd"],
    "scenarios": ["sequential"],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 5, "epochs_t2": 5, "batch_size": 10},
    "resources": {"device": "cpu", "checkpoint_seconds": 0.05},
}


def declaration(**changes: Any) -> Declared:
    return declare({**CONTENT, **changes})


def contents(found: waterjar.Study) -> dict[str, str]:
    return {run.path.name: run.attributes["seal"]["content"] for run in found}


def writer(run: Path) -> int | None:
    """The process that writes a run, as its lock says."""
    lock = run / ".waterjar" / "lock"
    text = lock.read_text() if lock.exists() else ""
    return int(text) if text else None


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Killer:
    """Kills the worker of a run that has got so far, so many times."""

    def __init__(self, kills: int, *, only: str = "", seed: int = 0) -> None:
        self.left = kills
        self.pids: list[int] = []
        self._only = only
        self._rng = random.Random(seed)

    def __call__(self, jobs: list[Job], last: bool) -> None:
        for job in jobs:
            pid = writer(job.path) if job.path.name.startswith(self._only) else None
            if self.left and pid and pid != os.getpid() and pid not in self.pids and (job.path / "resources").exists():
                time.sleep(self._rng.uniform(0.0, 0.3))
                if writer(job.path) == pid:
                    os.kill(pid, signal.SIGKILL)
                    self.pids.append(pid)
                    self.left -= 1


class AtItsBeginning:
    """Kills every worker of one run as soon as it says that it begins."""

    def __init__(self, run: str) -> None:
        self.pids: list[int] = []
        self._run = run

    def __call__(self, jobs: list[Job], last: bool) -> None:
        file = jobs[0].path.parent / FOLDER / f"{self._run}.jsonl"
        words = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        for pid in [word["pid"] for word in words if word["kind"] == "began" and word["pid"] not in self.pids]:
            os.kill(pid, signal.SIGKILL)
            self.pids.append(pid)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_the_bits_are_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = study.run(declaration(), tmp_path / "whole", executor=InThisProcess())
    killer = Killer(1)
    again = study.run(declaration(), tmp_path / "killed", watch=killer, poll_seconds=0.02)
    assert len(killer.pids) == 1
    (run,) = again
    assert len(run.attributes["provenance"]["sessions"]) == 2
    assert contents(again) == contents(whole)
    assert f"{run.path.name}: its worker was lost (SIGKILL)" in caplog.text


@pytest.mark.slow
def test_a_run_that_dies_every_time_is_blamed_and_the_others_finish(tmp_path: Path) -> None:
    declared = declaration(strategies=["sgd", "ewc_on"], seeds=[1, 2], resources={**CONTENT["resources"], "workers": 2})
    whole = contents(study.run(declared, tmp_path / "whole", executor=InThisProcess()))
    unlucky = next(name for name in whole if "ewc_on" in name)
    killer = AtItsBeginning(unlucky)
    with pytest.raises(WaterjarError, match="1 of 4 runs failed, 3 are complete") as caught:
        study.run(declared, tmp_path / "killed", watch=killer, poll_seconds=0.02)
    assert f"{unlucky}: its worker was lost 3 times (SIGKILL) without a new recorded step" in str(caught.value)
    assert "out of memory" in str(caught.value)
    assert len(killer.pids) == 3
    assert contents(study.run(declared, tmp_path / "killed")) == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_time_with_two_workers(tmp_path: Path, seed: int) -> None:
    declared = declaration(
        strategies=["sgd", "ewc_on", {"learner": "derpp", "settings": {"buffer_size": 16}}],
        scenarios=["scratch_t2", "interleaved", "sequential"],
        resources={**CONTENT["resources"], "workers": 2},
    )
    whole = contents(study.run(declared, tmp_path / "whole", executor=InThisProcess()))
    killer = Killer(2, seed=seed)
    again = study.run(declared, tmp_path / "killed", watch=killer, poll_seconds=0.02)
    assert killer.left == 0
    assert contents(again) == whole


@pytest.mark.slow
def test_the_study_itself_killed_leaves_no_worker_and_goes_on(tmp_path: Path) -> None:
    content = {**CONTENT, "seeds": [1, 2], "training": {"epochs_t1": 40, "epochs_t2": 40, "batch_size": 10}}
    whole = contents(study.run(declare(content), tmp_path / "whole", executor=InThisProcess()))
    file, out = tmp_path / "study.yaml", tmp_path / "killed"
    file.write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "waterjar", "run", str(file), "--out", str(out), "--workers", "2"]
    for _ in range(2):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            end, pids = time.monotonic() + 120.0, []
            while len(pids) < 2 and time.monotonic() < end:
                time.sleep(0.02)
                found = [writer(out / name) for name in whole]
                pids = [pid for pid in found if pid and alive(pid)]
            assert len(pids) == 2
            process.kill()
        killed = time.monotonic()
        while any(alive(pid) for pid in pids):
            assert time.monotonic() - killed < 15.0, "a worker outlived the study by 15 s"  # one, on a free core
            time.sleep(0.05)
        assert {entry.status for entry in waterjar.open_study(out).entries} <= {"recording", "interrupted"}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert contents(waterjar.open_study(out)) == whole


class Broken:
    """An executor whose first worker was killed: this is how ProcessPoolExecutor says it."""

    def __init__(self) -> None:
        self._broken = False

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        if self._broken:
            raise BrokenProcessPool("A child process terminated abruptly")
        self._broken = True
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("A process in the process pool was terminated abruptly"))
        return future


def test_a_foreign_executor_that_breaks_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="2 of 2 runs failed, 0 are complete") as caught:
        study.run(declaration(seeds=[1, 2]), tmp_path, executor=Broken())
    assert str(caught.value).count("BrokenProcessPool: the executor lost a worker process") == 2
    assert "The default one, without `executor`, replaces such workers" in str(caught.value)


class Cancelling:
    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        return future


def test_a_foreign_executor_that_cancels_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="(?s)1 of 1 runs failed.*CancelledError"):
        study.run(declaration(), tmp_path, executor=Cancelling())


@pytest.mark.slow
def test_a_real_process_pool_breaks_as_told(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(WaterjarError, match="BrokenProcessPool: the executor lost"),
    ):
        study.run(declaration(), tmp_path, executor=pool, watch=Killer(1), poll_seconds=0.02)
