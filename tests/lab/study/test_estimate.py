"""The estimate of a study against what its runs then take."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.lab import data, study
from waterjar.lab.study import Declared, Job, declare, plan
from waterjar.lab.study.estimate import Estimate, estimate, finished_after
from waterjar.lab.study.kinds.einstellung.rehearsal import few_images, most_per_class, rehearse_copy, small_copy
from waterjar.lab.study.progress import kind_of, look

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


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.estimate.LocalPool", InThisProcess)


@pytest.fixture
def quick(in_this_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.estimate._SECONDS", 1e-6)


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


@pytest.mark.usefixtures("quick")
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
    assert (after.seconds, after.bytes, after.start) == (0.0, 0, 0.0)
    assert {(cost.seconds, cost.bytes) for cost in after.costs.values()} == {(0.0, 0)}


@pytest.mark.usefixtures("quick")
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


def test_a_small_copy_has_the_runs_classes_and_a_few_of_its_images() -> None:
    images = data.load("glyphs", **GLYPHS)
    (config,) = study.expand(declaration())
    few = few_images(images, config, 4)
    assert few.train_labels.tolist().count(0) == 4
    assert set(few.train_labels.tolist()) == set(few.test_labels.tolist()) == set(range(8))
    assert few.test_labels.tolist().count(0) == 1  # 6 of 20
    position = {int(index): row for row, index in enumerate(images.train_index)}
    rows = [position[int(index)] for index in few.train_index]
    assert (images.train_images[rows] == few.train_images).all()
    assert most_per_class(images, config) == 20


def test_a_rehearsal_measures_every_part(tmp_path: Path) -> None:
    images = data.load("glyphs", **GLYPHS)
    (config,) = study.expand(declaration(strategies=[{"learner": "er", "settings": {"buffer_size": 16}}]))
    copy = small_copy(config)
    cache = data.to_cache(few_images(images, config, 4), tmp_path)
    found = rehearse_copy(copy.model_dump(mode="json"), str(cache), {"threads": 1, "device": "cpu"})
    assert [phase.images for phase in found.phases] == [16, 8]
    assert found.evaluated == 4 + 2 * 4 + 2 * 3 + 8  # T1; four sets with, three without the shortcut; held out
    assert found.last > found.best + 16 * 3 * 32 * 32 * 4
    assert found.seconds > found.fixed > 0.0
    (features,) = [array for array in found.arrays if array.samples and array.along == "snapshot"]
    assert (features.rows, features.files, features.samples) == (8, 8, 2)  # two phases of 3 epochs, from 0 on


@pytest.mark.parametrize(
    ("name", "expected"),
    [("estimate._ALTOGETHER", [2, 2, 8]), ("kinds.einstellung.estimate._TOO_SLOW", [2, 2])],
)
def test_many_kinds_and_slow_ones_are_tried_less(
    name: str, expected: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes: list[int] = []

    def note(images: data.ImageData, config: Any, per_class: int) -> data.ImageData:
        sizes.append(per_class)
        return few_images(images, config, per_class)

    monkeypatch.setattr("waterjar.lab.study.estimate.LocalPool", InThisProcess)
    monkeypatch.setattr("waterjar.lab.study.kinds.einstellung.estimate.few_images", note)
    monkeypatch.setattr(f"waterjar.lab.study.{name}", 1e-6)
    estimated(declaration(), tmp_path)
    assert sizes == expected


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
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", REAL)
def test_a_run_takes_what_was_estimated(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In seconds of the processor, so that it says something on a busy machine too."""
    for module in ("loop", "study.kinds.einstellung.rehearsal"):
        monkeypatch.setattr(f"waterjar.lab.{module}.time", SimpleNamespace(monotonic=time.process_time))
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
    assert 1 / 1.5 < cost.seconds / executor.seconds < 1.5


@pytest.mark.slow
def test_a_study_takes_what_was_estimated(tmp_path: Path) -> None:
    declared = really("small_cnn")
    _, before = estimated(declared, tmp_path)
    start = time.monotonic()
    study.run(declared, tmp_path)
    real = time.monotonic() - start
    print(f"\nstudy: {before.seconds:.1f} s estimated ({before.start:.1f} s of them to start), {real:.1f} s real")
    if os.getloadavg()[0] > 1.5:
        pytest.skip("the machine is busy with other things")
    assert 1 / 1.5 < before.seconds / real < 1.5


def no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("place", ["waterjar.lab.data._cache.npy.write_array", "waterjar.lab.checkpoint.save", ""])
@pytest.mark.usefixtures("in_this_process")
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
    assert ("could not write the copy of the image set" in str(raised.value)) == ("_cache" in place)
    assert str(raised.value).count("TMPDIR") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("in_this_process")
def test_other_faults_of_a_rehearsal_are_told_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise WaterjarError("no such thing")

    images = data.load("glyphs", **GLYPHS)
    jobs = plan(declare(CONTENT), tmp_path / "out", images)
    monkeypatch.setattr("waterjar.lab.checkpoint.save", refuse)
    with pytest.raises(WaterjarError, match="^no such thing$"):
        estimate(declare(CONTENT), jobs, images)
