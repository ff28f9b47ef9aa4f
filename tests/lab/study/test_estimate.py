"""The estimate of a study against what its runs then take."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

import torch

from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.lab import data, study
from waterjar.lab.checkpoint import Progress
from waterjar.lab.loop import Phase, Usage
from waterjar.lab.study import Declared, Job, declare, plan
from waterjar.lab.study import estimate as estimating
from waterjar.lab.study.estimate import Estimate, estimate, finished_after
from waterjar.lab.study.progress import kind_of, look
from waterjar.lab.study.rehearsal import part_of, rehearse

pytestmark = pytest.mark.torch

CONTENT: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1],
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": ["sgd"],
    "scenarios": ["sequential"],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 2, "epochs_t2": 3, "batch_size": 10},
    "recording": {"weights": True, "features": ["penultimate"]},
    "resources": {"device": "cpu", "checkpoint_seconds": 0.05},
}


def declaration(**changes: Any) -> Declared:
    return declare({**CONTENT, **changes})


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """What a file takes is the disk's affair."""
    return disk_path


def on_disk(*folders: Path) -> int:
    """What the file system says, blocks and all: independent of how the estimate counts."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return sum(path.lstat().st_blocks * 512 for path in paths)


def estimated(declared: Declared, out: Path) -> tuple[list[Job], Estimate]:
    images = data.load(declared.data.name, **declared.data.settings)
    jobs = plan(declared, out, images)
    return jobs, estimate(declared, jobs, images)


def test_disk_is_estimated_and_runs_count_with_what_is_left(tmp_path: Path) -> None:
    declared = declaration(strategies=["ewc_on"])
    jobs, before = estimated(declared, tmp_path)
    assert before.seconds > sum(cost.seconds for cost in before.costs.values()) > 0.0
    study.run(declared, tmp_path, executor=InThisProcess())
    for job in jobs:
        real = on_disk(job.path, tmp_path / ".waterjar" / "checkpoints" / job.path.name)
        assert before.costs[job.path.name].bytes == pytest.approx(real, rel=0.25)
    assert before.bytes == pytest.approx(on_disk(tmp_path), rel=0.25)
    _, after = estimated(declared, tmp_path)
    assert (after.seconds, after.bytes, after.kinds) == (0.0, 0, 0)
    assert {(cost.seconds, cost.bytes) for cost in after.costs.values()} == {(0.0, 0)}


@pytest.mark.slow
def test_a_run_begun_counts_with_the_steps_to_come(tmp_path: Path) -> None:
    declared = declaration(training={"epochs_t1": 10, "epochs_t2": 10, "batch_size": 10})
    (job,), whole = estimated(declared, tmp_path)

    def quickest() -> float:  # other work on the machine only ever adds
        return min(estimated(declared, tmp_path)[1].costs[job.path.name].seconds for _ in range(3))

    before = quickest()
    from waterjar.lab.einstellung import Einstellung

    class Enough(Exception):
        pass

    def stop(*_: object) -> None:
        if job.path.exists() and look(job).steps >= 16:
            raise Enough

    with pytest.MonkeyPatch.context() as patch:
        evaluate = Einstellung.evaluate
        patch.setattr(Einstellung, "evaluate", lambda self: (stop(), evaluate(self))[1])
        with pytest.raises(Enough):
            study.run(declared, tmp_path, executor=InThisProcess())
    assert look(job).steps == 16
    _, left = estimated(declared, tmp_path)
    assert 0.05 < quickest() / before < 0.6  # 6 of 22 steps, and what a run has beside its steps
    assert left.bytes < whole.bytes / 2


def test_kinds_are_told_apart_by_what_costs_time(tmp_path: Path) -> None:
    images = data.load("glyphs", **GLYPHS)

    def kinds(**changes: Any) -> int:
        return len({kind_of(job) for job in plan(declaration(**changes), tmp_path, images)})

    assert kinds(seeds=[1, 2, 3]) == 1
    assert kinds(sweep={"shortcut.rate": [0.25, 0.5], "training.epochs_t2": [1, 2]}) == 1
    assert kinds(strategies=[{"learner": "sgd", "settings": {"lr": lr}} for lr in (0.1, 0.2)]) == 1
    assert kinds(strategies=[{"learner": "sgd", "settings": {"momentum": m}} for m in (0.0, 0.9)]) == 2
    assert kinds(strategies=[{"learner": "er", "settings": {"buffer_size": n}} for n in (10, 20)]) == 2
    assert kinds(backbones=[{"name": "small_cnn", "settings": {"width": n}} for n in (4, 8)]) == 2
    assert kinds(sweep={"training.batch_size": [8, 16]}) == 2


def test_a_part_has_the_first_images_of_each_class() -> None:
    images = data.load("glyphs", **GLYPHS)
    few = part_of(images, 0.2, 0.01)
    assert np.bincount(few.train_labels).tolist() == [4] * 8
    assert np.bincount(few.test_labels).tolist() == [2] * 8  # not fewer
    position = {int(index): row for row, index in enumerate(images.train_index)}
    rows = [position[int(index)] for index in few.train_index]
    assert (images.train_images[rows] == few.train_images).all()
    assert rows[:4] == np.flatnonzero(images.train_labels == few.train_labels[0])[:4].tolist()


class Slow:
    """An experiment whose every part takes a known time of a clock that it moves by itself."""

    epochs_a_step = 1
    asks_often = True
    now = 0.0

    def __init__(self, images: data.ImageData) -> None:
        count = len(images.train_labels) // 2
        self.phases = [Phase("a", 3, -(-count // 4)), Phase("b", 2, -(-count // 4))]
        self._images = images
        self.closed = False

    def recorder(self) -> dict[str, Any]:
        sizes = {"test": len(self._images.test_labels)}
        return {"config": {}, "seeds": [0], "eval_sets": ["test"], "eval_sizes": sizes, "tasks": ["a", "b"]}

    def describe(self, recorder: Any) -> None: ...

    def begin(self, phase: int) -> None:
        Slow.now += 0.5

    def train(self, at: Progress, stop: int) -> None:
        Slow.now += (0.01, 0.03)[at.phase] * (stop - at.batch) + (1.0 if at.batch == 0 else 0.0)

    def end(self, at: Progress) -> None:
        Slow.now += 0.002 * self.phases[at.phase].batches

    def evaluated(self, at: Progress) -> dict[str, Any]:
        Slow.now += 1e-4 * len(self._images.test_labels)
        return {"performance": {"accuracy": [0.5]}}

    def is_due(self, at: Progress) -> bool:
        return at.epoch == 0

    def snapshot(self, at: Progress) -> dict[str, Any]:
        Slow.now += 0.2
        return {"weights": {"w": np.zeros(1000, np.float32)}}

    def score(self, at: Progress) -> float | None:
        return None

    def usage(self, at: Progress) -> Usage:
        return Usage(len(self._images.train_labels), 1000, 0)

    def state(self) -> Any:
        return {"w": torch.zeros(1000)}

    def close(self) -> None:
        self.closed = True


def test_each_part_of_a_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.rehearsal.time", SimpleNamespace(monotonic=lambda: Slow.now))
    images = data.load("glyphs", **{**GLYPHS, "train_per_class": 200, "test_per_class": 600})
    made: list[Slow] = []

    def make(given: data.ImageData, _: Path) -> Slow:
        made.append(Slow(given))
        return made[-1]

    found = rehearse(make, images, Slow.now + 100.0)  # type: ignore[arg-type]
    whole, part = made
    assert whole.closed and part.closed
    assert (whole.phases[0].batches, part.phases[0].batches) == (200, 5)
    assert [phase.begin for phase in found.phases] == pytest.approx([0.5, 0.5])
    assert [phase.end for phase in found.phases] == pytest.approx([0.002] * 2)  # for each batch
    assert [phase.batch for phase in found.phases] == pytest.approx([0.01 + 0.2, 0.03 + 0.2])  # a second an epoch of 5
    assert (found.evaluation, found.share) == (pytest.approx(0.48), 1.0)  # the whole of it: it is quick
    assert (found.snapshot, found.due) == (pytest.approx(0.2), 2 / 7)
    assert found.flops == 5 * 1000
    assert 4000 < found.last < 20_000 and found.best == 0
    assert 2 * 4096 <= found.files.grown(7, 4) - found.files.grown(7, 2) <= 2 * 5 * 4096  # a file each, and folders
    late = rehearse(make, images, Slow.now)  # type: ignore[arg-type]
    assert late.share == pytest.approx(len(made[-1]._images.test_labels) / 4800)
    assert late.evaluation == pytest.approx(0.48)
    assert len(late.phases) == 1 and late.batches < found.batches


def test_kinds_without_time_are_inferred_by_what_they_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbones = [{"name": "mlp", "settings": {"hidden": [n]}} for n in (4, 8, 16)]
    declared = declaration(backbones=backbones, recording={})
    images = data.load("glyphs", **GLYPHS)
    jobs = plan(declared, tmp_path, images)
    monkeypatch.setattr(estimating, "_LEAST", 0.0)
    found = estimate(declared, jobs, images)
    costs = [found.costs[job.path.name] for job in jobs]
    assert (found.kinds, found.tried) == (3, 1)
    assert [cost.inferred for cost in costs] == [False, True, True]
    assert costs[0].seconds < costs[1].seconds < costs[2].seconds
    assert all(cost.bytes == costs[0].bytes for cost in costs)


def test_a_kind_that_is_too_slow_to_be_tried_has_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "_CUT_OFF", 0.2)
    monkeypatch.setattr("waterjar.lab.einstellung.Einstellung.train", lambda *_: time.sleep(60))
    began = time.monotonic()
    (job,), found = estimated(declaration(), tmp_path)
    assert time.monotonic() - began < 20
    assert math.isnan(found.seconds) and math.isnan(found.costs[job.path.name].seconds)
    assert (found.tried, found.batches) == (0, 0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def test_runs_go_to_the_worker_that_is_free_first() -> None:
    assert finished_after([], 3) == 0.0
    assert finished_after([5.0], 1, start=2.0) == 7.0
    assert finished_after([5.0, 1.0, 1.0, 1.0], 2, start=2.0) == 7.0


CLASSES = {"alphabets": 6, "characters": 5, "train_per_class": 100, "test_per_class": 30}
REAL: dict[str, dict[str, Any]] = {
    "small_cnn": {"strategies": ["sgd"]},
    "mlp": {"strategies": [{"learner": "derpp", "settings": {"buffer_size": 200}}], "backbones": ["mlp"]},
    "ewc": {"strategies": [{"learner": "ewc_on", "settings": {"fisher": "exact"}}]},
}


def really(name: str) -> Declared:
    content = {
        **CONTENT,
        "data": {"name": "glyphs", "settings": CLASSES},
        "tasks": {"t1_superclasses": [0, 1, 2], "t2_superclasses": [3, 4, 5], "shortcut_superclasses": [3]},
        "backbones": ["small_cnn"],
        "training": {"epochs_t1": 8, "epochs_t2": 8, "batch_size": 32},
        "recording": {"weights": True} if name == "mlp" else {},
        **REAL[name],
    }
    return declare(content)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_run_takes_what_was_estimated(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In seconds of the processor, so that it says something on a busy machine too."""
    for module in ("loop", "study.rehearsal"):
        monkeypatch.setattr(f"waterjar.lab.{module}.time", SimpleNamespace(monotonic=time.process_time))
    monkeypatch.setattr(estimating, "time", SimpleNamespace(monotonic=time.process_time))
    declared = really(name)
    (job,), before = estimated(declared, tmp_path)
    executor = InThisProcess()
    study.run(declared, tmp_path, executor=executor)
    cost = before.costs[job.path.name]
    size = on_disk(job.path, tmp_path / ".waterjar" / "checkpoints" / job.path.name)
    print(
        f"\n{name}: {cost.seconds:.2f} s estimated, {executor.seconds:.2f} s real; "
        f"{cost.bytes / 1e6:.2f} MB estimated, {size / 1e6:.2f} MB real"
    )
    assert cost.bytes == pytest.approx(size, rel=0.25)
    assert 1 / 2 < cost.seconds / executor.seconds < 2


@pytest.mark.slow
def test_a_study_takes_what_was_estimated(tmp_path: Path) -> None:
    declared = really("small_cnn")
    _, before = estimated(declared, tmp_path)
    start = time.monotonic()
    study.run(declared, tmp_path)
    real = time.monotonic() - start
    print(f"\nstudy: {before.seconds:.1f} s estimated in {before.took:.1f} s, {real:.1f} s real")
    if os.getloadavg()[0] > 1.5:
        pytest.skip("the machine is busy with other things")
    assert 1 / 2 < before.seconds / real < 2


def no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("place", ["waterjar.lab.checkpoint.save", ""])
def test_no_room_for_a_rehearsal_says_where_room_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path if place else tmp_path / "absent"))
    images = data.load("glyphs", **GLYPHS)
    jobs = plan(declare(CONTENT), tmp_path / "out", images)
    if place:
        monkeypatch.setattr(place, no_space)
    with pytest.raises(WaterjarError, match="set the environment variable TMPDIR to a folder with more room") as raised:
        estimate(declare(CONTENT), jobs, images)
    assert ("No space left on device" if place else "No such file or directory") in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert str(raised.value).count("TMPDIR") == 1
    assert list(tmp_path.iterdir()) == []


def test_other_faults_of_a_rehearsal_are_told_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise WaterjarError("no such thing")

    images = data.load("glyphs", **GLYPHS)
    jobs = plan(declare(CONTENT), tmp_path / "out", images)
    monkeypatch.setattr("waterjar.lab.checkpoint.save", refuse)
    with pytest.raises(WaterjarError, match="^no such thing$"):
        estimate(declare(CONTENT), jobs, images)
