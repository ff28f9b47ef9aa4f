"""`diagnose --executor` and `doctor --device`, as a person calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

from lab.study.in_this_process import InThisProcess
from waterjar.cli.main import app
from waterjar.lab import study

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = {
        "kind": "einstellung", "data": {"name": "glyphs", "settings": GLYPHS}, "seeds": [1],
        "backbones": [{"name": "small_cnn", "settings": {"width": 4}}], "strategies": ["sgd"],
        "tasks": TASKS.model_dump(mode="json"), "training": {"epochs_t1": 1, "epochs_t2": 1, "batch_size": 10},
        "recording": {"features": ["penultimate"], "samples": 12}, "resources": {"device": "cpu"},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("trained") / "study"
    study.run(study.declare(content), folder, executor=InThisProcess())
    return folder


@pytest.mark.parametrize("executor", ["{name: dask, workers: 2}", "{name: slurm, cluster: local, workers: 2}", "local"])
def test_measurements_are_the_same_on_every_executor(trained: Path, tmp_path: Path, executor: str) -> None:
    pytest.importorskip("distributed" if "dask" in executor else "submitit")
    shutil.copytree(trained, tmp_path / "study")
    found = []
    for folder, more in ((trained, []), (tmp_path / "study", ["--executor", executor])):
        told = CliRunner().invoke(app, ["diagnose", str(folder), "--only", "geometry", "--fresh", "--json", *more])
        assert told.exit_code == 0, told.output
        found.append(json.loads(told.stdout)["values"])
    assert found[0] == found[1] and found[0]


def test_a_device_that_keeps_its_promises_and_one_that_is_not_there() -> None:
    told = CliRunner().invoke(app, ["doctor", "--device", "cpu", "--json"])
    assert told.exit_code == 0, told.output
    checks = json.loads(told.stdout)
    assert checks and "false" not in json.dumps(checks)
    import torch

    if not torch.cuda.is_available():
        told = CliRunner().invoke(app, ["doctor", "--device", "cuda"])
        assert told.exit_code and "is not there" in str(told.exception)
