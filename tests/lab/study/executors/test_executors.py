"""Executors by name: as they are written, refused, chosen on the command line; and none of it is part of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from typer.testing import CliRunner

from lab.study.in_this_process import InThisProcess
from lab.study.test_every_field import BASE
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.cli.measured import executor_of
from waterjar.lab import study
from waterjar.lab.study import declare, executors, kinds
from waterjar.lab.study.blocking import Blocking
from waterjar.lab.study.executors import Choice, LostWorkerError, Needs, _gpus, open_pool
from waterjar.lab.study.executors.local import LocalPool

pytestmark = pytest.mark.torch


def test_they_are_found_by_name() -> None:
    assert executors.names() == ("dask", "local", "slurm")


@pytest.mark.parametrize("kind", kinds.names())
@pytest.mark.parametrize(
    "written",
    [
        {"executor": {"name": "dask", "scheduler": "tcp://host:8786", "workers": 4}},
        {"executor": {"name": "dask", "settings": {"scheduler": "tcp://host:8786", "workers": 4}}},
        {"resources": {"executor": {"name": "dask", "scheduler": "tcp://host:8786", "workers": 4}}},
    ],
)
def test_as_they_are_written(kind: str, written: dict[str, Any]) -> None:
    resources = declare({**BASE[kind], **written}).resources
    assert resources.executor == Choice(name="dask", settings={"scheduler": "tcp://host:8786", "workers": 4})
    assert resources.at_a_time == 4
    assert declare({**BASE[kind], "executor": "slurm"}).resources.executor == Choice(name="slurm")
    assert declare(BASE[kind]).resources.executor == Choice(name="local")
    again = declare({**BASE[kind], "resources": resources.model_dump(mode="json")})  # as it stands in study.yaml
    assert again.resources == resources


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dusk", "executor 'dusk' is unknown: did you mean 'dask'"),
        ({"name": "dask", "schedule": "x"}, "did you mean 'resources.executor.settings.scheduler'"),
        ({"name": "dask", "workers": 0}, "resources.executor.settings.workers"),
        ({"name": "slurm", "time": "long"}, "resources.executor.settings.time"),
        ({"name": "local", "partition": "gpu"}, "setting 'resources.executor.settings.partition' is unknown"),
        (3, "resources.executor"),
    ],
)
def test_faults(given: object, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        declare({**BASE["einstellung"], "executor": given})


def test_no_part_of_a_run_s_identity(tmp_path: Path) -> None:
    names = []
    for number, executor in enumerate(("local", {"name": "slurm", "partition": "gpu"})):
        declared = declare({**BASE["einstellung"], "executor": executor})
        done = study.run(declared, tmp_path / str(number), executor=InThisProcess())
        names.append([(run.run_id, run.attributes["seal"]["content"]) for run in done])
        assert done.declaration["resources"]["executor"] == declared.resources.executor.model_dump(mode="json")
    assert names[0] == names[1]


def test_the_one_that_is_declared_runs_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def record(settings: Any, needs: Needs) -> InThisProcess:
        opened.append((settings.partition, settings.gpus, needs.workers, needs.calls, needs.device))
        return InThisProcess(1)

    monkeypatch.setattr("waterjar.lab.study.executors.slurm.open_pool", record)
    content = {**BASE["einstellung"], "seeds": [1, 2], "executor": {"name": "slurm", "partition": "big", "gpus": 2}}
    study.run(declare({**content, "resources": {"device": "cpu", "workers": 7}}), tmp_path)
    assert opened == [("big", 2, 7, 2, "cpu")]
    study.run(declare(content), tmp_path)
    assert len(opened) == 1  # nothing is opened where nothing is left to run


def test_the_command_line_goes_before_the_file() -> None:
    declared = Choice(name="dask", settings={"scheduler": "tcp://host:1", "workers": 2})
    assert executor_of(None, declared) is declared
    assert executor_of("dask", declared) is declared  # by name alone: as the file has it
    assert executor_of("slurm", declared) == Choice(name="slurm")
    assert executor_of("{name: dask, workers: 3}", declared).settings == {"workers": 3}
    resources = declare(BASE["einstellung"]).resources
    assert resources.steered(5, declared).at_a_time == 5
    assert resources.steered(None, declared).at_a_time == 2
    for wrong, message in (
        ("dusk", "did you mean 'dask'"),
        ("[1]", "expected dask or local or slurm"),
        ("{", "--exec"),
    ):
        with pytest.raises(WaterjarError, match=message):
            executor_of(wrong)


def test_the_command_to_go_on_with_names_the_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    import yaml

    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(BASE["einstellung"]))
    monkeypatch.setattr(study, "run", lambda *_, **__: signal.default_int_handler(2, None))
    result = CliRunner().invoke(app, ["run", str(file), "--executor", "{name: dask, workers: 3}"])
    assert result.exit_code == 130
    assert f"go on with: waterjar run {file} --executor '{{name: dask, workers: 3}}'" in result.stderr


def test_each_worker_has_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_gpus.VISIBLE, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)  # a fake: there is none here
    assert [_gpus.gpu_of(worker, "cuda") for worker in range(5)] == ["0", "1", "2", "0", "1"]
    assert _gpus.gpu_of(1, "auto") == "1"
    assert _gpus.gpu_of(1, "cpu") is None
    monkeypatch.setenv(_gpus.VISIBLE, "4, 6")  # those that a cluster has given
    assert [_gpus.gpu_of(worker, "cuda") for worker in range(3)] == ["4", "6", "4"]
    monkeypatch.setenv(_gpus.VISIBLE, "4")
    assert _gpus.gpu_of(1, "cuda") is None  # nothing to share out
    with _gpus.visible("6"):
        assert os.environ[_gpus.VISIBLE] == "6"
    assert os.environ[_gpus.VISIBLE] == "4"


@pytest.mark.slow
def test_a_worker_sees_its_gpu_before_torch_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process gets its environment when it starts, so nothing can have been imported before."""
    monkeypatch.setenv(_gpus.VISIBLE, "7,8,9")
    pool = LocalPool(2, device="cuda", first=1)
    environ = "open('/proc/self/environ').read()"
    try:
        futures = [pool.submit(eval, f"__import__('time').sleep(2) or {environ}") for _ in range(2)]
        while not all(future.done() for future in futures):
            pool.attend(0.2)
        found = {one for future in futures for one in future.result().split("\0") if one.startswith(_gpus.VISIBLE)}
        assert found == {"CUDA_VISIBLE_DEVICES=8", "CUDA_VISIBLE_DEVICES=9"}
    finally:
        pool.stop()
    assert os.environ[_gpus.VISIBLE] == "7,8,9"


class Lossy(InThisProcess):
    """Loses the first so many workers."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    def submit(self, fn: Any, /, *args: Any) -> Any:
        future = super().submit(fn, *args)
        if self.losses:
            self.losses -= 1
            future = type(future)()
            future.set_exception(LostWorkerError("SIGKILL"))
        return future


def test_a_measurement_is_made_again_when_its_worker_is_lost() -> None:
    assert Blocking(Lossy(2)).submit(max, 1, 2).result() == 2
    with pytest.raises(WaterjarError, match="its worker was lost 3 times"):
        Blocking(Lossy(3)).submit(max, 1, 2).result()

    def wrong() -> None:
        raise WaterjarError("a setting")

    pool = Lossy(0)
    with pytest.raises(WaterjarError, match="a setting"):
        Blocking(pool).submit(wrong).result()
    assert pool.calls == 1


@pytest.mark.parametrize(("name", "package"), [("dask", "distributed"), ("slurm", "submitit")])
def test_what_is_not_installed_is_said(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(WaterjarError, match=rf"pip install '\.\[{name}\]' in a checkout"):
        open_pool(Choice(name=name), Needs(1, tmp_path, 1))
