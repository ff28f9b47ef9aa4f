"""Whole runs in small: engines, experts, baselines, resuming, and that every diagnostic reads what is recorded."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import waterjar
from lab.binary.tiny_binary import ALL_OPTIONS, tiny
from waterjar.diagnose import continual, geometry, plasticity
from waterjar.errors import WaterjarError
from waterjar.lab import checkpoint, data
from waterjar.lab.binary import BinaryConfig, draw_tasks, engines, run_id_of, train_binary, workers
from waterjar.lab.binary.engines import LocalEngine
from waterjar.lab.binary.learner import first_network
from waterjar.lab.binary.repeat_group import RepeatGroup
from waterjar.lab.data import ImageData, image_data
from waterjar.run.reader import Run

pytestmark = pytest.mark.torch
CNN = {"network": "cnn", "network_settings": {"channels": [3, 4], "dense": [6, 5]}}
EVERYTHING: dict[str, Any] = {"learner": "rl", "options": ALL_OPTIONS, "random_baseline": True, "multitask": True}


def trained(folder: Path, config: BinaryConfig, images: ImageData, engine: str = "loop", **how: Any) -> Run:
    path = train_binary(config, images, folder / "run", checkpoints=folder / "c", device="cpu", engine=engine, **how)
    return waterjar.open_run(path)


def numbers(run: Run, group: str) -> dict[str, np.ndarray[Any, Any]]:
    return {str(name): run[group][name].values for name in run[group].data_vars if run[group][name].dtype.kind == "f"}


def assert_alike(one: Run, other: Run, repeats: slice = slice(None), tolerance: float = 1e-5) -> None:
    for group in ("performance", "expert", "train", "weights"):
        for name, values in numbers(one, group).items():
            axis = one[group][name].dims.index("repeat")
            own = np.moveaxis(values, axis, 0)[repeats]
            np.testing.assert_allclose(
                own, np.moveaxis(numbers(other, group)[name], axis, 0), atol=tolerance, rtol=1e-4
            )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, glyphs: ImageData) -> Run:
    return trained(tmp_path_factory.mktemp("whole"), tiny(**EVERYTHING, repeats=3), glyphs)


def test_what_is_recorded(whole: Run, glyphs: ImageData) -> None:
    config = tiny(**EVERYTHING, repeats=3)
    performance = whole["performance"]
    assert performance.accuracy.dims == ("step", "eval_set", "repeat")
    assert performance.eval_set.values.tolist() == ["task_000", "task_001", "task_002"]
    assert whole.attributes["eval_sizes"] == {"task_000": 12, "task_001": 12, "task_002": 12}
    assert performance.epoch.values.tolist() == [0, 1, 2] * 3
    assert performance.total_epoch.values.tolist() == [0, 1, 2, 2, 3, 4, 4, 5, 6]
    assert performance.train_task.values.tolist() == [f"task_{k:03d}" for k in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    assert performance.seed.values.tolist() == list(config.repeat_seeds)
    assert np.isfinite(performance.accuracy.values).all()
    expert = whole["expert"]
    own = expert.train_task_index.values[:, None] == np.arange(3)
    assert np.isfinite(expert.accuracy.values[own]).all() and np.isnan(expert.accuracy.values[~own]).all()
    assert whole["train"].step.values.tolist() == [1, 2, 4, 5, 7, 8]
    assert {"loss", "accuracy", "reward", "gradient_norm", "learning_rate"} <= set(whole["train"].data_vars)
    assert whole["resources"].images.values.tolist() == [0, 120, 120] * 3
    assert (whole["resources"].buffer_bytes.values > 0).all()
    assert whole["features/penultimate"].features.shape == (9, 3, 3, 6, 8)
    probes, tasks = whole["probe_samples"], draw_tasks(glyphs, config)
    assert (probes.task_class.values == tasks.classes).all()
    place = {int(sample): row for row, sample in enumerate(glyphs.test_index)}
    for repeat in range(3):
        for task in range(3):
            fine = [glyphs.test_labels[place[int(i)]] for i in probes.sample_index.values[repeat, task]]
            assert fine == tasks.classes[repeat, task][probes.label.values[repeat, task]].tolist()
    for repeat, seed in enumerate(config.repeat_seeds):
        network = first_network(config, (3, 32, 32), seed)
        flat = torch.cat([weights.detach().reshape(-1) for weights in network.parameters()])
        assert (whole["weights"].initial.values[repeat] == flat.numpy()).all()
    assert (whole["weights"].weights.values[0] == whole["weights"].initial.values).all()
    assert waterjar.verify(whole.path).state == "sealed"


def test_features_and_accuracy_are_those_of_the_recorded_weights(whole: Run, glyphs: ImageData) -> None:
    config, tasks = tiny(**EVERYTHING, repeats=3), draw_tasks(glyphs, tiny(repeats=3))
    train = glyphs.train_images.astype(np.float64) / 255
    mean, std = train.mean((0, 1, 2)), train.std((0, 1, 2))
    images = torch.from_numpy(np.moveaxis((glyphs.test_images / 255 - mean) / std, -1, 1)).float()
    network = first_network(config, (3, 32, 32), 0)
    for repeat in range(3):
        flat = torch.from_numpy(whole["weights"].weights.values[4, repeat])
        torch.nn.utils.vector_to_parameters(flat, network.parameters())
        for task in range(3):
            rows = tasks.test(repeat)[task]
            logits = network(images[rows]).detach()
            labels = torch.arange(12) // 6
            accuracy = float((logits.argmax(1) == labels).double().mean())
            loss = float(torch.nn.functional.cross_entropy(logits, labels))
            assert whole["performance"].accuracy.values[4, task, repeat] == accuracy
            assert whole["performance"].loss.values[4, task, repeat] == pytest.approx(loss, rel=1e-4)
            index = {int(sample): row for row, sample in enumerate(glyphs.test_index)}
            probed = [index[int(i)] for i in whole["probe_samples"].sample_index.values[repeat, task]]
            _, seen = network.forward_features(images[probed], ["penultimate"])
            features = whole["features/penultimate"].features.values[4, repeat, task]
            np.testing.assert_allclose(features, seen["penultimate"].detach().numpy(), atol=1e-4)


@pytest.mark.parametrize("network", [{}, CNN, {**CNN, "options": [{"name": "layer_norm"}, *ALL_OPTIONS]}])
def test_engines_agree(tmp_path: Path, glyphs: ImageData, network: dict[str, Any]) -> None:
    config = tiny(**{**EVERYTHING, **network, "tasks": {"number": 2}, "recording": {"weights": True}})
    loop, vmap = (trained(tmp_path / engine, config, glyphs, engine) for engine in ("loop", "vmap"))
    assert_alike(loop, vmap)
    again = trained(tmp_path / "again", config, glyphs, "vmap")
    assert again.attributes["seal"]["content"] == vmap.attributes["seal"]["content"]


def test_stacks_in_parts_are_the_same_repeats(
    tmp_path: Path, glyphs: ImageData, monkeypatch: pytest.MonkeyPatch, whole: Run
) -> None:
    monkeypatch.setattr(engines, "STACKED_BYTES", 1)
    config = tiny(**EVERYTHING, repeats=3)
    assert engines.stacks(config, first_network(config, (3, 32, 32), 0), "cpu") == [range(2), range(2, 3)]
    assert engines.stacks(config, first_network(config, (3, 32, 32), 0), "cuda") == [range(3)]
    assert_alike(whole, trained(tmp_path, config, glyphs, "vmap"))


def test_processes_have_the_bits_of_the_loop(tmp_path: Path, glyphs: ImageData, whole: Run) -> None:
    run = trained(tmp_path, tiny(**EVERYTHING, repeats=3), glyphs, "processes", workers=2)
    assert run.attributes["seal"]["content"] == whole.attributes["seal"]["content"]
    assert run.attributes["config"]["engine"] == "processes"
    assert run.attributes["run_id"] == whole.attributes["run_id"]


def test_a_repeat_is_the_same_alone_and_among_others(tmp_path: Path, glyphs: ImageData, whole: Run) -> None:
    seeds = tiny(repeats=3).repeat_seeds
    alone = trained(tmp_path, tiny(**EVERYTHING, repeats=None, seeds=[seeds[1]]), glyphs)
    for group in ("performance", "expert", "train", "weights"):
        for name, values in numbers(alone, group).items():
            axis = alone[group][name].dims.index("repeat")
            np.testing.assert_array_equal(np.take(numbers(whole, group)[name], [1], axis), values)


def test_an_expert_is_the_learner_whose_first_task_it_is(tmp_path: Path, glyphs: ImageData) -> None:
    """On the same batches: what differs is its first weights, so give it the learner's."""
    config = tiny(
        tasks={"number": 1}, options=[{"name": "l2_init"}, {"name": "shrink_and_perturb"}, {"name": "replay"}]
    )
    group = RepeatGroup(config, glyphs, [0], "cpu")
    group.begin_task(0)
    expert = group._expert
    assert expert is not None
    assert not torch.equal(expert.weights.values, group.learner.weights.values)
    expert.load_state(group.learner.state())
    for epoch in range(2):
        traced, _ = group.train(epoch, 0, len(group.bounds))
        np.testing.assert_array_equal(traced[..., 0], traced[..., 1])  # of learner and expert
    assert torch.equal(expert.weights.values, group.learner.weights.values)


def test_the_experts_training_is_recorded(tmp_path: Path, glyphs: ImageData) -> None:
    """In one batch an epoch, the loss and accuracy of training are those of the weights before it."""
    images = dataclasses.replace(
        glyphs, test_images=glyphs.train_images, test_labels=glyphs.train_labels, test_index=glyphs.train_index
    )  # so that the evaluation is of the train images
    run = trained(tmp_path, tiny(training={"epochs": 2, "batch_size": 40}, tasks={"number": 2}), images)
    for name in ("accuracy", "loss"):
        told, judged = run["expert"][f"train_{name}"].values, run["expert"][name].values
        for task in range(2):
            assert np.isnan(told[3 * task]).all()
            rows = slice(3 * task, 3 * task + 2)
            np.testing.assert_allclose(told[3 * task + 1 : 3 * task + 3], judged[rows, task], rtol=1e-5)


def test_each_task_has_a_fresh_expert(whole: Run) -> None:
    starts = whole["expert"].loss.values[[0, 3, 6], [0, 1, 2]]
    assert len(np.unique(starts)) == starts.size
    assert not (starts == whole["performance"].loss.values[[0, 3, 6], [0, 1, 2]]).any()


def test_random_features_stay_and_the_multitask_network_sees_all_tasks(glyphs: ImageData) -> None:
    config = tiny(random_baseline=True, multitask=True, repeats=2)
    group = RepeatGroup(config, glyphs, [0, 1], "cpu")
    learners = group._learners()
    first = learners["random"].weights.values.clone()
    assert torch.equal(first, group.learner.weights.values)
    shown: list[np.ndarray[Any, Any]] = []
    original = group._mixture

    def listened(epoch: int, begin: int, end: int) -> Any:
        found = original(epoch, begin, end)
        fine = glyphs.train_labels[found.rows]
        for member in range(2):
            own = {int(c): label for task in group.tasks.classes[member] for label, c in enumerate(task)}
            assert [own[int(c)] for c in fine[member]] == found.labels[member].tolist()
        shown.append(found.rows)
        return found

    group._mixture = listened  # type: ignore[method-assign]
    for task in range(3):
        group.begin_task(task)
        for epoch in range(2):
            group.train(epoch, 0, len(group.bounds))
    features = learners["random"].weights.features
    assert torch.equal(learners["random"].weights.values[:, :features], first[:, :features])
    assert not torch.equal(learners["random"].weights.values[:, features:], first[:, features:])
    rows = np.concatenate(shown, axis=1)
    assert rows.shape == (2, 3 * 2 * 40)
    for member in range(2):  # two turns, each sees every image of every task once
        everything = np.sort(group.tasks.train(member).ravel())
        assert np.sort(rows[member, :120]).tolist() == everything.tolist()
        assert np.sort(rows[member, 120:]).tolist() == everything.tolist()
        assert rows[member, :120].tolist() != rows[member, 120:].tolist()


def quadrants() -> ImageData:
    """Four classes: which quarter of a noisy image is bright."""
    rng = np.random.default_rng(0)

    def split(each: int) -> tuple[Any, Any, Any]:
        labels = np.repeat(np.arange(4), each)
        images = rng.integers(0, 120, (len(labels), 8, 8, 3), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[4 * (label // 2) :, 4 * (label % 2) :][:4, :4] += 60
        return images, labels, np.arange(len(labels))

    names = ["a", "b", "c", "d"]
    return image_data(
        "quadrants", train=split(40), test=split(20), class_names=names, superclass_names=["all"],
        class_superclass=np.zeros(4, np.int64),
    )  # fmt: skip


@pytest.mark.parametrize("learner", ["sl", "rl"])
def test_it_learns(tmp_path: Path, learner: str) -> None:
    training = {"epochs": 8, "batch_size": 16, "log_frequency": 8, "lr_features": 0.1, "lr_readout": 0.1}
    run = trained(tmp_path, tiny(learner=learner, tasks={"number": 2}, training=training, recording={}), quadrants())
    own = run["performance"].accuracy.values[[1, 3], [0, 1]]
    assert own.mean() > 0.9
    assert run["expert"].accuracy.values[[1, 3], [0, 1]].mean() > 0.9
    assert run["train"].accuracy.values.mean() > 0.75


def test_the_three_analyses(whole: Run) -> None:
    found = continual.measure(whole)
    assert found.chance.values.tolist() == [[0.5] * 3] * 3
    assert found.tasks.values[0] == "task_000, task_001, task_002"
    accuracy = whole["performance"].accuracy.values
    final = accuracy[[2, 5, 8]]  # (train task, eval task, repeat)
    expected = (final[2, :2] - np.stack([final[0, 0], final[1, 1]])).mean(0)
    np.testing.assert_allclose(found.backward_transfer.values, expected)
    np.testing.assert_allclose(found.average_accuracy.values, final[2].mean(0))
    assert np.isfinite(found.forward_transfer.values).any()
    assert np.isfinite(continual.measure(whole, metric_type="loss", integrator="auc").forward_transfer.values).all()
    measured = plasticity.measure(whole)
    weights, first = whole["weights"].weights.values, whole["weights"].initial.values
    moved = np.sqrt(((weights[-1].astype(np.float64) - first) ** 2).mean(1))
    np.testing.assert_allclose(measured.weight_change_init.values[:, -1], moved, rtol=1e-5)
    assert np.isfinite(measured.effective_rank.values).all()
    assert measured.sizes["snapshot"] == 9
    shapes = geometry.measure(whole, n_t=5, subsamples=None)
    assert shapes.sizes["manifold"] == 2 and np.isfinite(shapes.capacity.values).all()
    assert geometry.measure(whole, n_t=3, subsamples=None, manifolds="task_class").sizes["manifold"] == 6


def test_one_repeat_three_classes_and_few_recorded_tasks(tmp_path: Path, glyphs: ImageData) -> None:
    config = tiny(
        repeats=1,
        tasks={"number": 2, "classes_per_task": 3},
        training={"epochs": 4, "log_frequency": 2, "batch_size": 13},
        recording={"features": ["hidden1"], "eval_tasks": [1], "samples": 4, "weights": True, "every": 5},
        experts=False,
    )
    run = trained(tmp_path, config, glyphs, "auto")
    assert run.attributes["config"]["engine"] == "loop"
    assert run["performance"].accuracy.shape == (6, 2, 1)
    assert run["features/hidden1"].features.shape == (4, 1, 1, 4, 12)
    assert run["features/hidden1"].epoch.values.tolist() == [0, 4, 0, 4]
    assert run["probe_samples"].label.values.tolist() == [[[0, 0, 1, 2]]]
    assert "expert" not in run.groups
    assert continual.measure(run).chance.values.tolist() == [[pytest.approx(1 / 3)] * 2]
    assert run["train"].reward.values.tolist() == run["train"].accuracy.values.tolist()


def test_cut_off_anywhere_and_taken_up_again(
    tmp_path: Path, glyphs: ImageData, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(**{**EVERYTHING, "options": ALL_OPTIONS[:3]}, tasks={"number": 2})
    expected = trained(tmp_path / "whole", config, glyphs)
    calls = 0
    original = LocalEngine.ask

    def cut(self: LocalEngine, request: str, *arguments: Any) -> list[Any]:
        nonlocal calls
        calls += 1
        if calls == 13:
            calls = 0
            raise KeyboardInterrupt
        return original(self, request, *arguments)

    monkeypatch.setattr(LocalEngine, "ask", cut)
    for attempt in range(40):
        try:
            found = trained(tmp_path / "cut", config, glyphs, "auto" if attempt else "loop", checkpoint_seconds=0.0)
            break
        except KeyboardInterrupt:
            continue
    assert attempt > 3
    assert found.attributes["seal"]["content"] == expected.attributes["seal"]["content"]
    monkeypatch.undo()
    assert trained(tmp_path / "cut", config, glyphs).path == found.path  # sealed: left alone
    assert not (tmp_path / "cut" / "c" / "last.pt").exists()


def interrupted(folder: Path, config: BinaryConfig, images: ImageData, engine: str) -> None:
    """A run that stops in its second task, with a checkpoint."""
    original = checkpoint.save

    def stop(*arguments: Any) -> None:
        original(*arguments)
        if arguments[3]["position"]["phase"] == 1:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "save", stop)
        trained(folder, config, images, engine, checkpoint_seconds=0.0)


def test_going_on_with_another_engine(tmp_path: Path, glyphs: ImageData) -> None:
    config = tiny(tasks={"number": 2}, recording={})
    expected = trained(tmp_path / "whole", config, glyphs)
    interrupted(tmp_path, config, glyphs, "loop")
    with pytest.raises(WaterjarError, match="belongs to run .*: remove it to start the run anew"):
        trained(tmp_path, config, glyphs, "vmap")
    found = trained(tmp_path, config, glyphs, "processes", workers=2)
    assert found.attributes["seal"]["content"] == expected.attributes["seal"]["content"]


def test_a_checkpoint_of_a_run_that_is_gone(tmp_path: Path, glyphs: ImageData) -> None:
    config = tiny(tasks={"number": 2}, recording={})
    interrupted(tmp_path, config, glyphs, "loop")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    found = trained(tmp_path, config, glyphs)
    assert found["performance"].sizes["step"] == 6


def test_auto_is_a_rule_and_no_race(tmp_path: Path, glyphs: ImageData, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a clock (this one finds whatever is tried later quicker) nor the number of cores gives other bits."""
    config = tiny(tasks={"number": 1}, recording={}, training={"epochs": 1, "batch_size": 16})
    expected = trained(tmp_path / "loop", config, glyphs, "loop")
    calls = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: -(0.5 ** next(calls)))
    for cores in (1, 2, 64):
        monkeypatch.setattr(engines, "cores", lambda cores=cores: cores)
        found = trained(tmp_path / f"auto{cores}", config, glyphs, "auto")
        assert found.attributes["seal"]["content"] == expected.attributes["seal"]["content"]
        assert found.attributes["run_id"] == expected.attributes["run_id"]


def test_what_auto_stands_for(glyphs: ImageData) -> None:
    short = tiny(tasks={"number": 1}, training={"epochs": 1})
    long = tiny(tasks={"number": 2}, training={"epochs": 100_000, "log_frequency": 100_000})
    assert engines.choose(short, glyphs, device="cpu", workers=8) == "loop"  # starting processes takes longer
    assert engines.choose(long, glyphs, device="cpu", workers=1) == "loop"
    assert engines.choose(long, glyphs, device="cpu", workers=2) == "processes"
    assert engines.choose(long, glyphs, device="cuda", workers=2) == "vmap"
    assert engines.choose(tiny(repeats=1), glyphs, device="cuda") == "loop"
    assert engines.cores() >= 1 and engines.processes_a_run(10**6) == 1


def test_what_changes_the_numbers_changes_the_identity(tmp_path: Path, glyphs: ImageData) -> None:
    config = tiny(tasks={"number": 1}, recording={})
    loop, vmap = (trained(tmp_path / engine, config, glyphs, engine) for engine in ("loop", "vmap"))
    assert loop.attributes["run_id"] == run_id_of(config, glyphs.fingerprint)
    assert vmap.attributes["run_id"] == run_id_of(config, glyphs.fingerprint, stacked=True)
    assert vmap.attributes["run_id"] != loop.attributes["run_id"]
    one = tiny(tasks={"number": 1}, recording={}, repeats=1)  # nothing to stack
    loop, vmap = (trained(tmp_path / f"{engine}-1", one, glyphs, engine) for engine in ("loop", "vmap"))
    assert vmap.attributes["run_id"] == loop.attributes["run_id"]
    assert vmap.attributes["seal"]["content"] == loop.attributes["seal"]["content"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_begun_when_both_had_one_identity(
    tmp_path: Path, glyphs: ImageData, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """It would be sealed as one of `vmap`, with the bits of the other, with or without its checkpoint."""
    config = tiny(tasks={"number": 2}, recording={})
    with monkeypatch.context() as before:
        before.setattr("waterjar.lab.binary.experiment.is_stacked", lambda *_: False)
        before.setattr("waterjar.lab.binary.experiment._check_that_it_was_not_stacked", lambda *_: None, raising=False)
        interrupted(tmp_path, config, glyphs, "vmap")
    if not kept:
        (tmp_path / "c" / "last.pt").unlink()
    assert waterjar.open_run(tmp_path / "run").attributes["run_id"] == run_id_of(config, glyphs.fingerprint)
    with pytest.raises(
        WaterjarError, match="run was begun with engine 'vmap' by an earlier version, and 'auto' would not"
    ):
        trained(tmp_path, config, glyphs, "auto")
    (tmp_path / "run").rename(tmp_path / "aside")
    assert trained(tmp_path, config, glyphs, "auto").attributes["config"]["engine"] == "loop"


def test_what_is_refused(tmp_path: Path, glyphs: ImageData) -> None:
    with pytest.raises(WaterjarError, match="engine 'lop' is unknown: did you mean 'loop'"):
        trained(tmp_path, tiny(), glyphs, "lop")
    with pytest.raises(WaterjarError, match="engine 'lop' is unknown"):
        engines.start("lop", tiny(), glyphs, device="cpu", scratch=tmp_path)
    with pytest.raises(WaterjarError, match="recording.features: layer 'penultimat' is unknown"):
        trained(tmp_path, tiny(recording={"features": ["penultimat"], "samples": 2}), glyphs)
    with pytest.raises(WaterjarError, match="at most 4 tasks"):
        trained(tmp_path, tiny(tasks={"number": 5}), glyphs)
    assert not (tmp_path / "run").exists()


def test_a_worker_that_is_lost_or_at_fault(tmp_path: Path, glyphs: ImageData) -> None:
    crew = workers.ProcessEngine(tiny(), glyphs, [[1], [0]], device="cpu", scratch=tmp_path)
    assert [answer.shape[0] for answer in (part["head.weight"] for part in crew.ask("first_weights"))] == [1, 1]
    assert crew.peak_memory() > 0
    crew._processes[1].kill()
    with pytest.raises(WaterjarError, match=r"worker process of repeats \[0\] is gone \(exit code -9"):
        crew.ask("begin_task", 0)
        crew.ask("evaluate")
    crew.close()


def test_what_a_worker_answers(tmp_path: Path, glyphs: ImageData) -> None:
    """`serve` in a thread of this process, at the other end of a pipe."""
    cache = data.to_cache(glyphs, tmp_path)
    threads = torch.get_num_threads()

    def served(config: BinaryConfig) -> tuple[Any, threading.Thread]:
        ours, theirs = multiprocessing.Pipe()
        thread = threading.Thread(
            target=workers.serve, args=(theirs, cache, config.model_dump(mode="json"), [1], "cpu"), daemon=True
        )
        thread.start()
        assert ours.poll(60)
        return ours, thread

    def answer(pipe: Any, *message: Any) -> Any:
        pipe.send(message)
        assert pipe.poll(60)
        return pipe.recv()

    try:
        pipe, thread = served(tiny())
        assert pipe.recv() == ("done", [1])
        assert answer(pipe, "begin_task", (0,)) == ("done", [None])
        kind, state = answer(pipe, "state", ())
        assert kind == "bytes"
        assert answer(pipe, workers._LOAD, (state,)) == ("done", [1])
        assert answer(pipe, workers._MEMORY, ())[1][0] > 0
        pipe.close()  # whoever asked is gone
        thread.join(60)
        assert not thread.is_alive()
        pipe, thread = served(tiny(recording={"features": ["hidden1"]}))
        kind, words = pipe.recv()
        assert kind == "fault" and "recording.samples is 50" in words
        thread.join(60)
    finally:
        torch.set_num_threads(threads)


def test_logits_that_are_not_finite_are_told_as_such(tmp_path: Path, glyphs: ImageData) -> None:
    training = {"epochs": 2, "batch_size": 16, "lr_features": 1e30, "lr_readout": 1e30}
    run = trained(tmp_path, tiny(tasks={"number": 1}, training=training, recording={}), glyphs)
    performance = run["performance"]
    assert np.isfinite(performance.accuracy.values[0]).all()
    assert np.isnan(performance.accuracy.values[-1]).all()
    assert (performance.accuracy_reason.values[-1] == 2).all()  # not_a_number
    for name in ("accuracy", "reward", "loss"):  # of the training too: an answer that is none is not class 0
        assert np.isnan(run["train"][name].values[-1]).all()


def test_flops_are_those_of_the_learner(tmp_path: Path, glyphs: ImageData) -> None:
    config = tiny(options=[{"name": "replay", "settings": {"size": 20, "replay": "always"}}])
    beside = tiny(options=config.model_dump()["options"], random_baseline=True, multitask=True)
    alone = tiny(options=config.model_dump()["options"], experts=False)
    runs = [trained(tmp_path / str(i), one, glyphs) for i, one in enumerate((config, beside, alone))]
    found = [run["resources"].flops.values for run in runs]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert found[0].sum() > trained(tmp_path / "plain", tiny(), glyphs)["resources"].flops.values.sum()
