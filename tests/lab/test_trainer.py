"""One run end to end: what is recorded, and that resuming and recording change no bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import waterjar
from recording import content, root_of
from tiny_lab import tiny
from waterjar import WaterjarError
from waterjar.lab import checkpoint, data, networks
from waterjar.lab.augmentation import NONE
from waterjar.lab.config import Augmentation, Planting, Recording, Training, resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import Einstellung, run_id_of, train
from waterjar.lab.evaluation import EVAL_SETS
from waterjar.run.identity import identify

pytestmark = pytest.mark.torch


def go(config: object, data: ImageData, folder: Path, **options: object) -> waterjar.Run:
    path = train(config, data, folder / "run", checkpoints=folder / "checkpoints", device="cpu", **options)  # type: ignore[arg-type]
    return waterjar.open_run(path)


def test_runs_whose_numbers_are_others_than_they_were_are_other_runs(glyphs: ImageData, tmp_path: Path) -> None:
    """What was sealed before all learners were one is not taken for what would be trained now."""
    config = tiny(training=Training(epochs_t1=1, epochs_t2=1))
    run = go(config, glyphs, tmp_path)
    assert (run.run_id, run.attributes["identity"]["numerics"]) == (run_id_of(config, glyphs.fingerprint), 2)
    assert run.run_id != identify(config.to_plain(), [config.seed], glyphs.fingerprint)[0]


def test_everything_is_recorded(glyphs: ImageData, tmp_path: Path) -> None:
    run = go(tiny(learner="derpp"), glyphs, tmp_path)
    data = run["performance"].load()
    assert data.train_task.values.tolist() == ["t1"] * 3 + ["t2"] * 4
    assert data.epoch.values.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert data.total_epoch.values.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert data.effective_epoch.values.tolist() == [0, 0, 0, 0, 1, 2, 3]
    assert data.eval_set.values.tolist() == list(EVAL_SETS)
    assert data.eval_task.values.tolist() == list(EVAL_SETS.values())
    assert not np.isnan(data.accuracy.values).any()
    sizes = run.attributes["eval_sizes"]
    assert list(sizes) == list(EVAL_SETS)
    assert sizes["t2_all_normal"] == sizes["t2_shortcut_normal"] + sizes["t2_nonshortcut_normal"]
    counted = data.accuracy.values[..., 0] * np.array(list(sizes.values()))  # shares of that many images
    np.testing.assert_allclose(counted, counted.round(), atol=1e-9)
    np.testing.assert_array_equal(data.accuracy.values[2], data.accuracy.values[3])  # the end of T1 is the start of T2
    train_group = run["train"]
    assert train_group.step.values.tolist() == [1, 2, 4, 5, 6]
    assert (train_group.loss.values > 0).all()
    assert ((train_group.accuracy.values >= 0) & (train_group.accuracy.values <= 1)).all()
    np.testing.assert_allclose(train_group.learning_rate.values, 0.05)
    trainer = Einstellung(tiny(learner="derpp"), glyphs, device="cpu")
    expected = int(trainer.tasks.carries["train"][trainer.phases[1].rows].sum())
    assert run["train"].patched_images.values.ravel().tolist() == [0, 0] + [expected] * 3  # mistake 2
    assert expected > 0
    resources = run["resources"]
    images = [len(trainer.phases[0].rows)] * 2, [len(trainer.phases[1].rows)] * 3
    assert resources.images.values.tolist() == [0, *images[0], 0, *images[1]]
    assert (resources.seconds.values > 0).all()
    assert (resources.peak_memory.values > 50e6).all()
    assert (resources.buffer_bytes.values[1:] >= 16 * 3 * 32 * 32 * 4).all()
    forward = networks.flops(trainer.learner.network)
    assert resources.flops.values[1] > 3 * forward * images[0][0]  # replay is counted
    assert run["weights"].sizes["snapshot"] == 7
    best = checkpoint.load(tmp_path / "checkpoints", "best.pt", run.run_id)
    validation = data.accuracy.sel(eval_set="t2_validation").values.ravel()[4:]
    assert best is not None
    assert best["step"] == 4 + int(validation.argmax())
    assert f"step {best['step']}: accuracy {float(validation.max())!r}" == str(run["events"].message.values[0])
    assert not (tmp_path / "checkpoints" / "last.pt").exists()
    assert run.config["method"] == "derpp"


@pytest.mark.parametrize(("scenario", "tasks", "effective"), [
    ("scratch_t2", ["t2"] * 4, [0, 1, 2, 3]), ("interleaved", ["joint"] * 4, [0, 1, 2, 3]),
])  # fmt: skip
def test_baselines(glyphs: ImageData, tmp_path: Path, scenario: str, tasks: list[str], effective: list[float]) -> None:
    run = go(tiny(scenario, "sgd" if scenario == "scratch_t2" else "joint"), glyphs, tmp_path)
    data = run["performance"]
    assert data.train_task.values.tolist() == tasks
    assert data.effective_epoch.values.tolist() == effective
    assert data.sizes["class"] == 8  # the head is as wide as in the others
    assert run.config["method"] == scenario


def test_the_shortcut_is_learned_and_masking_shows_it(tmp_path: Path) -> None:
    """One class a superclass, patched always and in one corner: the patch alone gives the class away."""
    config = tiny(
        "scratch_t2",
        learner_settings={"lr": 0.02, "momentum": 0.9},
        shortcut=Planting(rate=1.0, settings={"location": "top_left"}),
        augmentation=Augmentation(t1=NONE, t2=NONE),
        training=Training(epochs_t1=1, epochs_t2=25, batch_size=8),
    )
    few = data.load("glyphs", alphabets=4, characters=1, train_per_class=40, test_per_class=20)
    last = go(config, few, tmp_path)["performance"].isel(step=-1, repeat=0)
    accuracy = {name: float(last.task_accuracy.sel(eval_set=name)) for name in EVAL_SETS}
    assert accuracy["t2_shortcut_normal"] > 0.95
    assert accuracy["t2_shortcut_random_mask"] > 0.95
    assert accuracy["t2_shortcut_masked"] < 0.8
    assert accuracy["t2_nonshortcut_patched"] < 0.2 < accuracy["t2_nonshortcut_normal"]


def test_same_config_same_bits_and_recording_changes_none(glyphs: ImageData, tmp_path: Path) -> None:
    first = go(tiny(learner="er"), glyphs, tmp_path / "1")
    with torch.random.fork_rng():
        torch.manual_seed(77)
        second = go(tiny(learner="er"), glyphs, tmp_path / "2")
    seals = [run.attributes["seal"]["content"] for run in (first, second)]
    assert seals[0] == seals[1]
    quiet = go(tiny(learner="er", recording=Recording(class_accuracy=False)), glyphs, tmp_path / "3")
    featured = go(tiny(learner="er", recording=Recording(features=("penultimate",), every=2)), glyphs, tmp_path / "4")
    for other in (quiet, featured):
        np.testing.assert_array_equal(other["performance"].loss.values, first["performance"].loss.values)
    weights = [checkpoint.load(tmp_path / n / "checkpoints", "best.pt", r.run_id) for n, r in
               (("1", first), ("3", quiet), ("4", featured))]  # fmt: skip
    for other in weights[1:]:
        assert all(torch.equal(other["network"][key], value) for key, value in weights[0]["network"].items())


def test_features_and_what_they_are_of(glyphs: ImageData, tmp_path: Path) -> None:
    config = tiny("scratch_t2", recording=Recording(features=("penultimate", "conv1"), samples=7, every=2))
    run = go(config, glyphs, tmp_path)
    features = run["features/penultimate"].features
    assert features.dims == ("snapshot", "repeat", "eval_set", "sample", "unit")
    assert features.sizes["sample"] == 7
    assert features.snapshot.values.tolist() == [0, 2]
    assert "t2_all_normal" not in features.eval_set.values
    samples = run["probe_samples"]
    ids = samples.sample_index.sel(eval_set="t2_shortcut_clean").values.ravel()
    np.testing.assert_array_equal(ids, samples.sample_index.sel(eval_set="t2_shortcut_masked").values.ravel())
    rows = np.flatnonzero(np.isin(glyphs.test_index, ids))
    assert set(glyphs.class_superclass[glyphs.test_labels[rows]]) == {3}
    trainer = Einstellung(config, glyphs, device="cpu")
    box = trainer.tasks.shortcut.region(ids, "test")
    np.testing.assert_array_equal(samples.region.sel(eval_set="t2_shortcut_clean").values[0], box)
    assert "weights" not in run.groups


@pytest.mark.parametrize("learner", ["sgd", "joint", "er", "ewc_on", "derpp"])
def test_stopped_anywhere_and_resumed_gives_the_same_bits(
    glyphs: ImageData, tmp_path: Path, learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process: an exception after so many batches, mid-epoch, at ends of epochs and of tasks."""
    scenario = "interleaved" if learner == "joint" else "sequential"
    config = tiny(scenario, learner)
    expected = go(config, glyphs, tmp_path / "whole")
    kind = type(Einstellung(config, glyphs, device="cpu").learner)
    observe = kind.observe
    left = {"count": 3}

    def stop_some_time(self: object, inputs: object, labels: object, epoch: int = 0) -> object:
        left["count"] -= 1
        if left["count"] < 0:
            raise KeyboardInterrupt
        return observe(self, inputs, labels, epoch)

    monkeypatch.setattr(kind, "observe", stop_some_time)
    for count in (8, 15, 30, 14, 21, 10**9, 0):
        try:
            run = go(config, glyphs, tmp_path / "broken", checkpoint_seconds=0.0 if count % 2 else 1e9)
            break
        except KeyboardInterrupt:
            left["count"] = count
    assert run.status == "sealed"
    assert _differences(run.path, expected.path) == []
    assert run.attributes["seal"]["content"] == expected.attributes["seal"]["content"]
    assert len(run.attributes["provenance"]["sessions"]) > 3


def _differences(left: Path, right: Path) -> list[str]:
    a, b = content(left), content(right)
    return [key for key in a.keys() | b.keys() if a.get(key) != b.get(key) and not key.startswith("resources/")]


def test_a_sealed_run_is_left_alone(glyphs: ImageData, tmp_path: Path) -> None:
    run = go(tiny("scratch_t2"), glyphs, tmp_path)
    (tmp_path / "checkpoints" / "last.pt").write_bytes(b"left over")
    before = root_of(run.path)
    go(tiny("scratch_t2"), glyphs, tmp_path)
    assert root_of(run.path) == before
    assert not (tmp_path / "checkpoints" / "last.pt").exists()


def test_a_checkpoint_of_another_run_is_refused(glyphs: ImageData, tmp_path: Path) -> None:
    """Mistake 7."""
    folder = tmp_path / "checkpoints"
    checkpoint.save(folder, "last.pt", "another", {"position": {}, "learner": {}})
    with pytest.raises(WaterjarError, match="belongs to run another, not"):
        go(tiny("scratch_t2"), glyphs, tmp_path)
    (folder / "last.pt").write_bytes(b"garbage")
    with pytest.raises(WaterjarError, match=r"last.pt cannot be read .* remove it to start the run anew"):
        go(tiny("scratch_t2"), glyphs, tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_hostile_checkpoint_runs_no_code(tmp_path: Path) -> None:
    import os
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'hacked'}",)

    (tmp_path / "last.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(WaterjarError, match="cannot be read"):
        checkpoint.load(tmp_path, "last.pt", "x")
    torch.save({"run_id": "x", "bad": Evil()}, tmp_path / "last.pt")
    with pytest.raises(WaterjarError, match="cannot be read"):
        checkpoint.load(tmp_path, "last.pt", "x")
    assert not (tmp_path / "hacked").exists()


def test_unknown_layer_and_device(glyphs: ImageData, tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="layer 'penultimat' is unknown: did you mean 'penultimate'"):
        go(tiny("scratch_t2", recording=Recording(features=("penultimat",))), glyphs, tmp_path)
    with pytest.raises(WaterjarError, match="device 'gpu' is unknown"):
        resolve_device("gpu")  # type: ignore[arg-type]
    assert resolve_device("cpu") == "cpu"
    if not torch.cuda.is_available():
        assert resolve_device("auto") in ("cpu", "mps")
        with pytest.raises(WaterjarError, match="device 'cuda' is not there"):
            resolve_device("cuda")


def test_bfloat16_and_batch_norm_train(glyphs: ImageData, tmp_path: Path) -> None:
    config = tiny(
        "scratch_t2",
        backbone_settings={"width": 4, "norm": "batch"},
        training=Training(epochs_t1=1, epochs_t2=1, batch_size=7, precision="bfloat16"),
    )
    assert np.isfinite(go(config, glyphs, tmp_path)["performance"].loss.values).all()


def test_a_removed_run_starts_from_its_beginning(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old checkpoint would make a run that lacks its first steps."""
    import shutil

    config = tiny("scratch_t2")
    kind = type(Einstellung(config, glyphs, device="cpu").learner)
    observe, left = kind.observe, {"count": 12}

    def stop_some_time(self: object, inputs: object, labels: object, epoch: int = 0) -> object:
        left["count"] -= 1
        if left["count"] == 0:
            raise KeyboardInterrupt
        return observe(self, inputs, labels, epoch)

    monkeypatch.setattr(kind, "observe", stop_some_time)
    with pytest.raises(KeyboardInterrupt):
        go(config, glyphs, tmp_path, checkpoint_seconds=0.0)
    assert (tmp_path / "checkpoints" / "last.pt").exists()
    shutil.rmtree(tmp_path / "run")
    run = go(config, glyphs, tmp_path)
    assert run["performance"].epoch.values.tolist() == [0, 1, 2, 3]
    assert run.attributes["seal"]["content"] == go(config, glyphs, tmp_path / "2").attributes["seal"]["content"]


def test_one_flipped_bit_in_a_checkpoint_is_noticed(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, "last.pt", "x", {"weights": torch.zeros(1000)})
    assert checkpoint.load(tmp_path, "last.pt", "x") is not None
    data = bytearray((tmp_path / "last.pt").read_bytes())
    for change in (lambda d: d[:-300], lambda d: d[:900] + bytes([d[900] ^ 4]) + d[901:], lambda d: b""):
        (tmp_path / "last.pt").write_bytes(bytes(change(bytes(data))))
        with pytest.raises(WaterjarError, match="cannot be read"):
            checkpoint.load(tmp_path, "last.pt", "x")


def test_a_diverged_network_has_no_accuracy(glyphs: ImageData, tmp_path: Path) -> None:
    run = go(tiny("scratch_t2", learner_settings={"lr": 1e12}), glyphs, tmp_path)
    data = run["performance"].isel(step=-1, repeat=0)
    names = data.accuracy_reason.attrs["flag_meanings"].split()
    for variable in ("accuracy", "macro_accuracy", "task_accuracy", "loss"):
        assert np.isnan(data[variable].values).all()
        assert {names[code] for code in data[f"{variable}_reason"].values} == {"not_a_number"}
    assert np.isnan(data.class_accuracy.values).all()


def test_a_run_that_is_older_than_its_checkpoint_says_what_to_delete(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    config = tiny("scratch_t2")
    kind = type(Einstellung(config, glyphs, device="cpu").learner)
    observe, left = kind.observe, {"count": 12}

    def stop_some_time(self: object, inputs: object, labels: object, epoch: int = 0) -> object:
        left["count"] -= 1
        if left["count"] == 0:
            raise KeyboardInterrupt
        return observe(self, inputs, labels, epoch)

    monkeypatch.setattr(kind, "observe", stop_some_time)
    for stop, copy in ((5, True), (20, False)):  # in the first epoch, then further on
        left["count"] = stop
        with pytest.raises(KeyboardInterrupt):
            go(config, glyphs, tmp_path, checkpoint_seconds=0.0)
        if copy:
            shutil.copytree(tmp_path / "run", tmp_path / "older")
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "older").rename(tmp_path / "run")
    left["count"] = -1
    last = tmp_path / "checkpoints" / "last.pt"
    with pytest.raises(WaterjarError, match=r"ends at step 0, but its checkpoint .*last.pt is of step 2") as raised:
        go(config, glyphs, tmp_path)
    assert f"rm '{last}'" in str(raised.value)
    last.unlink()  # as it says
    run = go(config, glyphs, tmp_path)
    assert run.attributes["seal"]["content"] == go(config, glyphs, tmp_path / "2").attributes["seal"]["content"]


@pytest.mark.parametrize(("fisher", "samples"), [("empirical", None), ("exact", None), ("label_weighted", 30)])
def test_flops_by_hand_with_the_fisher_information(
    glyphs: ImageData, tmp_path: Path, fisher: str, samples: int | None
) -> None:
    """Three forward passes' worth an image of each epoch, and of each image measured when a task ends."""
    settings = {"lr": 0.01, "fisher": fisher, "fisher_samples": samples}
    config = tiny(learner="ewc_on", learner_settings=settings, recording=Recording())
    run = go(config, glyphs, tmp_path)
    trainer = Einstellung(config, glyphs, device="cpu")
    unit = 3 * networks.flops(trainer.learner.network)
    t1, t2 = 2 * 2 * 20, 2 * 2 * 15  # superclasses x classes x images, a quarter of T2 held out
    measured = [(samples or images) * (8 if fisher == "exact" else 1) for images in (t1, t2)]
    expected = [0, t1, t1 + measured[0], 0, t2, t2, t2 + measured[1]]
    assert run["resources"].flops.values.tolist() == [unit * images for images in expected]


def test_memory_is_the_runs_own(glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run of a process does not inherit what came before it; where nothing is known, nothing is said."""
    first = np.ones(400 * 2**20 // 8)
    before = go(tiny("scratch_t2"), glyphs, tmp_path / "1")["resources"].peak_memory.values
    del first
    after = go(tiny("scratch_t2"), glyphs, tmp_path / "2")["resources"].peak_memory.values
    if Path("/proc/self/clear_refs").exists():
        assert after.max() < before.min() - 300 * 2**20
    monkeypatch.setattr("waterjar.lab.memory.PeakMemory.largest", lambda self: None)
    resources = go(tiny("scratch_t2"), glyphs, tmp_path / "3")["resources"]
    assert np.isnan(resources.peak_memory.values).all()
    names = resources.peak_memory_reason.attrs["flag_meanings"].split()
    assert {names[code] for code in resources.peak_memory_reason.values} == {"not_recorded"}
