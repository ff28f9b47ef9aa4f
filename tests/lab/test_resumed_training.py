"""A run that was stopped and taken up again: what is recorded once stays once, and what adds up is added up."""

from __future__ import annotations

import time
import types
from pathlib import Path

import pytest
import torch

import waterjar
from recording import content
from tiny_lab import tiny
from waterjar import WaterjarError
from waterjar.lab import checkpoint, loop
from waterjar.lab.checkpoint import LAST, Progress
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import Einstellung, train
from waterjar.lab.memory import PeakMemory
from waterjar.run import seal

pytestmark = pytest.mark.torch


def go(data: ImageData, folder: Path, every: float = 1e9) -> waterjar.Run:
    path = train(
        tiny("scratch_t2"), data, folder / "run", checkpoints=folder / "c", device="cpu", checkpoint_seconds=every
    )
    return waterjar.open_run(path)


class Killed(BaseException):
    """Stands in for kill -9: nothing tidies up after it."""


def killed(*_: object) -> None:
    raise Killed


def test_killed_before_the_seal_the_best_step_is_noted_once(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = go(glyphs, tmp_path / "whole")
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(seal, "close", killed)
            with pytest.raises(Killed):
                go(glyphs, tmp_path / "killed")
    run = go(glyphs, tmp_path / "killed")
    assert len(run.attributes["provenance"]["sessions"]) == 3
    assert run["events"].sizes["event"] == 1
    ours, theirs = content(run.path), content(whole.path)
    assert [
        key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key) and "resources/" not in key
    ] == []
    assert run.attributes["seal"]["content"] == whole.attributes["seal"]["content"]


def test_seconds_and_memory_of_an_epoch_count_those_before_the_kill(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour passes in the first epoch of the first session, and it has the larger memory; the second one is lean."""
    whole = go(glyphs, tmp_path / "whole")
    kind = type(Einstellung(tiny("scratch_t2"), glyphs, device="cpu").learner)
    observe, largest = kind.observe, PeakMemory.largest
    calls = {"count": 0}
    late = {"by": 0.0}
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + late["by"])

    def slow(self: object, inputs: object, labels: object, epoch: int = 0) -> object:
        calls["count"] += 1
        if calls["count"] == 6:
            raise KeyboardInterrupt
        if calls["count"] == 2:
            late["by"] = 3600.0
        return observe(self, inputs, labels, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "observe", slow)
        patch.setattr("waterjar.lab.loop.time", clock)
        patch.setattr(PeakMemory, "largest", lambda self: 10**12)
        with pytest.raises(KeyboardInterrupt):
            go(glyphs, tmp_path / "stopped", every=0.0)
    assert largest is PeakMemory.largest
    run = go(glyphs, tmp_path / "stopped")
    seconds = run["resources"].seconds.values.ravel()
    assert seconds[1] >= 3600.0
    assert (seconds[2:] < 3600.0).all(), "it is counted once"
    assert run["resources"].peak_memory.values.ravel().tolist() == [10**12] * 4
    assert run.attributes["seal"]["content"] == whole.attributes["seal"]["content"]


def test_an_older_checkpoint_is_read_and_a_newer_one_refused(tmp_path: Path) -> None:
    older = {"phase": 0, "begun": True, "epoch": 1, "batch": 2, "step": 1, "trace": torch.zeros(3, 4), "replayed": 0}
    assert checkpoint.position(tmp_path, {"position": older}).seconds == 0.0
    assert checkpoint.position(tmp_path, {"position": {}}) == Progress()
    with pytest.raises(WaterjarError, match=r"last.pt is of a later waterjar \(it holds mood\).*remove the checkpoint"):
        checkpoint.position(tmp_path, {"position": {**older, "mood": 3}})


@pytest.mark.parametrize("sealed", [True, False])
def test_a_run_that_another_process_seals_meanwhile_is_complete(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    resume = loop.Loop.resume

    def overtaken(self: loop.Loop, found: object) -> int:
        monkeypatch.setattr(loop.Loop, "resume", resume)
        if sealed:
            go(glyphs, tmp_path)
        else:
            other = waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"])
            held.append(other)
        return resume(self, found)

    held: list[waterjar.Recorder] = []
    monkeypatch.setattr(loop.Loop, "resume", overtaken)
    if sealed:
        run = go(glyphs, tmp_path)
        assert run.status == "sealed"
        assert len(run.attributes["provenance"]["sessions"]) == 1
        assert not (tmp_path / "c" / LAST).exists()
    else:
        with pytest.raises(WaterjarError, match="holds a run already|is being written"):
            go(glyphs, tmp_path)
        held[0].close()


@pytest.mark.parametrize("content_", [
    {}, {"position": None}, {"position": []}, {"experiment": 1, "position": {}}, {"experiment": {}, "position": {}},
    {"experiment": {"network": {}}, "position": {"phase": "x"}}, "swap",
])  # fmt: skip
def test_a_checkpoint_that_is_not_what_it_says_is_one_error(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_: object
) -> None:
    """Its checksum holds: whoever wrote it computed it anew."""
    with monkeypatch.context() as patch:
        patch.setattr(seal, "close", killed)
        with pytest.raises(Killed):
            go(glyphs, tmp_path, every=0.0)
    found = checkpoint.load(tmp_path / "c", LAST, waterjar.open_run(tmp_path / "run").run_id)
    assert found is not None
    run_id = found.pop("run_id")
    made = {**found, "position": {**found["position"], "epoch": "one"}} if content_ == "swap" else content_
    checkpoint.save(tmp_path / "c", LAST, run_id, made)  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match=r"last.pt cannot be read \(\w+\): remove it|to be loaded into"):
        go(glyphs, tmp_path)
