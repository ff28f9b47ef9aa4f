"""A dask cluster: one that is started here, whose workers are killed; and what is said of one that does not answer."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("distributed")

import distributed

from lab.study.in_this_process import InThisProcess
from lab.study.test_killed_study import CONTENT, contents, writer
from waterjar import WaterjarError
from waterjar.lab import study
from waterjar.lab.study import Job, declare
from waterjar.lab.study.executors import Choice, Needs, dask, open_pool

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::ResourceWarning")]


class KillOfDask:
    """Kills the dask worker of the first run that has recorded something, and the training of the second."""

    def __init__(self) -> None:
        self.killed: dict[str, int] = {}

    def __call__(self, jobs: list[Job], last: bool) -> None:
        for job in jobs:
            pid = writer(job.path)
            if pid and len(self.killed) < 2 and job.path.name not in self.killed and (job.path / "resources").exists():
                stat = Path(f"/proc/{pid}/stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                os.kill(pid if self.killed else parent, signal.SIGKILL)
                self.killed[job.path.name] = pid


@pytest.mark.slow
def test_killed_workers_are_replaced_and_the_bits_are_the_same(tmp_path: Path) -> None:
    content = {**CONTENT, "seeds": [1, 2, 3], "training": {"epochs_t1": 20, "epochs_t2": 20, "batch_size": 10}}
    whole = study.run(declare(content), tmp_path / "whole", executor=InThisProcess())
    killer = KillOfDask()
    declared = declare({**content, "executor": {"name": "dask", "workers": 2}})
    again = study.run(declared, tmp_path / "killed", watch=killer, poll_seconds=0.05)
    assert contents(again) == contents(whole)
    sessions = {run.path.name: len(run.attributes["provenance"]["sessions"]) for run in again}
    assert sessions == {name: 2 if name in killer.killed else 1 for name in sessions}
    assert len(killer.killed) == 2


@pytest.mark.slow
def test_a_given_scheduler_is_used_and_left_running(tmp_path: Path) -> None:
    with dask._local_cluster(1) as cluster:
        content = {**CONTENT, "executor": {"name": "dask", "scheduler": cluster.scheduler_address}}
        (run,) = study.run(declare(content), tmp_path)
        assert run.status == "sealed"
        with distributed.Client(cluster, set_as_default=False) as client:
            assert len(client.scheduler_info()["workers"]) == 1


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_PATIENCE", 0.5)
    for address in ("tcp://127.0.0.1:1", "nowhere"):
        with pytest.raises(WaterjarError, match=f"executor dask: no scheduler answers at {address}"):
            open_pool(Choice(name="dask", settings={"scheduler": address}), Needs(1, tmp_path, 1))
