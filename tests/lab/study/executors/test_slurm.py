"""Slurm through submitit's local stand-in: jobs that are told to stop or killed; and what sbatch would be told."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("submitit")

from lab.study.in_this_process import InThisProcess
from lab.study.test_killed_study import CONTENT, contents, writer
from waterjar import WaterjarError
from waterjar.lab import study
from waterjar.lab.study import Job, declare
from waterjar.lab.study.executors import Choice, LostWorkerError, Needs, open_pool, slurm

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::ResourceWarning")]


class Signals:
    """Sends the first run that has recorded something one signal, and the second another."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self.left = list(numbers)
        self.hit: list[str] = []

    def __call__(self, jobs: list[Job], last: bool) -> None:
        for job in jobs:
            pid = writer(job.path)
            if self.left and pid and job.path.name not in self.hit and (job.path / "resources").exists():
                os.kill(pid, self.left.pop(0))
                self.hit.append(job.path.name)


@pytest.mark.slow
def test_what_is_told_to_stop_or_killed_goes_back_into_the_queue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = {**CONTENT, "seeds": [1, 2, 3], "training": {"epochs_t1": 20, "epochs_t2": 20, "batch_size": 10}}
    whole = study.run(declare(content), tmp_path / "whole", executor=InThisProcess())
    declared = declare({**content, "executor": {"name": "slurm", "cluster": "local", "workers": 2}})
    signals = Signals(signal.SIGTERM, signal.SIGKILL)
    again = study.run(declared, tmp_path / "stopped", watch=signals, poll_seconds=0.05)
    assert contents(again) == contents(whole)
    sessions = {run.path.name: run.attributes["provenance"]["sessions"] for run in again}
    assert {name: len(found) for name, found in sessions.items()} == {
        name: 2 if name in signals.hit else 1 for name in sessions
    }
    assert "ended" in sessions[signals.hit[0]][0]  # it was marked as interrupted
    assert f"{signals.hit[0]}: its worker was told to stop; it goes back into the queue" in caplog.text
    assert f"{signals.hit[1]}: its worker was lost" in caplog.text


@pytest.fixture
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An sbatch that takes jobs and never starts them, and a queue that has one of two."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in {
        "sbatch": 'cp "$1" $0.seen; echo Submitted batch job 7',
        "squeue": "echo 7_1",
        "srun": "",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.usefixtures("_programs")
def test_what_sbatch_is_told_and_jobs_that_leave_the_queue_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"partition": "gpu", "time": 90, "gpus": 1, "memory": 8, "options": {"nice": 5}}
    settings |= {"workers": 3, "setup": ["module load cuda"], "account": "lab"}
    pool = open_pool(Choice(name="slurm", settings=settings), Needs(1, tmp_path / "files", 2, threads=2))
    monkeypatch.setattr(slurm, "_GONE", 0.0)
    futures = [pool.submit(max, 1, 2), pool.submit(max, 3, 4)]
    pool.attend(0.1)
    told = (tmp_path / "bin" / "sbatch.seen").read_text()
    for line in ("partition=gpu", "time=90", "gpus-per-node=1", "mem=8GB", "cpus-per-task=2", "account=lab"):
        assert f"#SBATCH --{line}\n" in told
    for line in ("array=0-1%2", "no-requeue", "nice=5", "signal=USR2@120"):  # two jobs, of three that may go on
        assert f"#SBATCH --{line}\n" in told
    assert "\nmodule load cuda\n" in told
    assert isinstance(futures[0].exception(), LostWorkerError)  # 7_0 is not in the queue
    assert not futures[1].done()
    monkeypatch.setattr(subprocess, "run", _fails)  # a controller that is down is no reason to give up jobs
    pool.attend(0.1)
    assert not futures[1].done()


def _fails(*_: Any, **__: Any) -> None:
    raise subprocess.CalledProcessError(1, "squeue", stderr="slurm_load_jobs error")


def test_a_machine_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WaterjarError, match="executor slurm: .*Expected a machine from which sbatch submits jobs"):
        open_pool(Choice(name="slurm"), Needs(1, tmp_path, 1))
