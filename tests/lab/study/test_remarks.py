"""What is said about a declaration that is valid: before the training, and of the memory that runs took."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import waterjar
from lab.study.in_this_process import InThisProcess
from tiny_lab import GLYPHS, TASKS
from waterjar.lab import study
from waterjar.lab.study import declare, notes

pytestmark = pytest.mark.torch

SMALL: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1],
    "backbones": [{"name": "mlp", "settings": {"hidden": [4]}}],
    "scenarios": ["scratch_t2"],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 1, "epochs_t2": 1},
    "resources": {"device": "cpu"},
}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device with 12 GB."""
    monkeypatch.setattr("waterjar.lab.study.remarks.resolve_device", lambda _: "cuda")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=12 * 10**9))


def test_nothing_to_say() -> None:
    assert notes(declare({"kind": "einstellung"})) == []


def test_words_that_are_not_acted_on_yet() -> None:
    said = notes(declare({"kind": "einstellung", "analysis": {"attention_analysis": True}}))
    assert said == ["analysis.attention_analysis is not acted on yet: attention cannot be recorded"]


def test_a_limit_on_the_cpu_limits_nothing() -> None:
    declaration = declare({"kind": "einstellung", "gpu_memory_limit": 8000, "resources": {"device": "cpu"}})
    assert declaration.resources.gpu_memory_limit == 8000
    assert notes(declaration) == ["resources.gpu_memory_limit is 8000 MB, and limits nothing on the device 'cpu'"]


@pytest.mark.usefixtures("cuda")
def test_a_limit_beside_the_memory_of_the_device() -> None:
    assert notes(declare({"kind": "einstellung", "gpu_memory_limit": 8000})) == []
    said = notes(declare({"kind": "einstellung", "gpu_memory_limit": 16000}))
    assert said == ["resources.gpu_memory_limit is 16000 MB, and the device has 12000 MB"]


@pytest.mark.usefixtures("cuda")
def test_runs_that_took_more_than_the_limit_are_named(tmp_path: Path) -> None:
    for name, peak in (("large", 9e9), ("small", 7e9), ("silent", None)):
        with waterjar.Recorder(
            tmp_path / name, {"method": name}, seeds=[1], eval_sets={"test": 0}, tasks=["task"]
        ) as recorder:
            used = {"seconds": 1.0} if peak is None else {"seconds": 1.0, "peak_device_memory": peak}
            recorder.log(train_task="task", epoch=0, performance={"accuracy": [0.5]}, resources=used)
    found = waterjar.open_study(tmp_path)
    said = notes(declare({"kind": "einstellung", "gpu_memory_limit": 8000}), found)
    assert said == [
        "large took 9000 MB on the device, more than resources.gpu_memory_limit, which is 8000 MB",
        "1 of 3 runs did not record what they took on the device, so that resources.gpu_memory_limit was not checked",
    ]
    assert notes(declare({"kind": "einstellung"}), found) == []


def test_a_study_logs_what_there_is_to_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "waterjar.lab.study.runner"):
        study.run(declare({**SMALL, "gpu_memory_limit": 8000}), tmp_path, executor=InThisProcess())
    assert caplog.messages == ["resources.gpu_memory_limit is 8000 MB, and limits nothing on the device 'cpu'"]
