"""Single examples of a run of the laboratory: they are those of the evaluation, and recording them changes no bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("torch")

import waterjar
from lab.binary.tiny_binary import GLYPHS as BINARY_GLYPHS
from lab.binary.tiny_binary import tiny as tiny_binary
from tiny_lab import tiny
from waterjar.lab import data
from waterjar.lab.binary import train_binary
from waterjar.lab.config import Recording
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import Einstellung, train
from waterjar.lab.evaluation import EVAL_SETS

pytestmark = pytest.mark.torch
WHOLE = ("seconds", "peak_memory", "events/time")
"""What is no function of the config."""


def einstellung(folder: Path, glyphs: ImageData, scenario: str = "sequential", **recording: Any) -> waterjar.Run:
    config = tiny(scenario, recording=Recording(weights=True, **recording))
    train(config, glyphs, folder / "run", checkpoints=folder / "checkpoints", device="cpu")
    return waterjar.open_run(folder / "run")


def binary(folder: Path, glyphs: ImageData, engine: str = "loop", **recording: Any) -> waterjar.Run:
    config = tiny_binary(recording={"features": ["penultimate"], "weights": True, "samples": 6, **recording})
    path = folder / "run"
    train_binary(config, glyphs, path, checkpoints=folder / "checkpoints", device="cpu", engine=engine)
    return waterjar.open_run(path)


def same_but_for_examples(with_them: waterjar.Run, without: waterjar.Run) -> None:
    assert set(with_them.groups) - set(without.groups) == {"examples"}
    for key, node in without.nodes.items():
        if node["node_type"] == "array" and not key.endswith(WHOLE):
            np.testing.assert_array_equal(with_them.array(key), without.array(key), err_msg=key)


@pytest.fixture(scope="module")
def recorded(glyphs: ImageData, tmp_path_factory: pytest.TempPathFactory) -> waterjar.Run:
    return einstellung(tmp_path_factory.mktemp("with"), glyphs, examples=True, train_examples=5)


def test_recording_examples_changes_no_other_bit(recorded: waterjar.Run, glyphs: ImageData, tmp_path: Path) -> None:
    same_but_for_examples(recorded, einstellung(tmp_path, glyphs))


def test_accuracies_are_those_of_the_examples(recorded: waterjar.Run) -> None:
    examples, performance = recorded.load("examples"), recorded.load("performance")
    assert list(dict.fromkeys(examples["eval_set"].values)) == [*EVAL_SETS, "train"]
    for name in EVAL_SETS:
        right = examples["correct"].values[:, 0, examples["eval_set"].values == name]
        assert set(np.unique(right)) <= {0, 1}
        np.testing.assert_allclose(right.mean(1), performance["accuracy"].sel(eval_set=name).values[:, 0], atol=1e-12)
    np.testing.assert_array_equal(examples["correct"].values == 1, examples["margin"].values > 0)


def test_what_the_examples_are(recorded: waterjar.Run, glyphs: ImageData, tmp_path: Path) -> None:
    config = tiny(recording=Recording(weights=True, examples=True, train_examples=5))
    trainer = Einstellung(config, glyphs, device="cpu")
    examples, experiment = recorded.load("examples"), trainer.tasks
    train_index = np.asarray(glyphs.train_index)
    own = examples.isel(example=examples["eval_set"].values == "train", repeat=0)
    assert own["task"].values.tolist() == [0] * 5 + [1] * 5
    rows = [int(np.flatnonzero(train_index == one)[0]) for one in own["sample_index"].values]
    assert set(rows[:5]) <= set(experiment.train_rows["t1"].tolist())
    assert set(rows[5:]) <= set(experiment.train_rows["t2"].tolist())  # none that is held out
    assert own["label"].values.tolist() == experiment.labels["train"][rows].tolist()
    shown = examples.isel(example=examples["eval_set"].values == "t1_all", repeat=0)
    fine = dict(zip(glyphs.test_index.tolist(), experiment.labels["test"].tolist(), strict=True))
    assert [fine[int(one)] for one in shown["sample_index"].values] == shown["label"].values.tolist()


def test_the_margin_is_that_of_the_recorded_weights(recorded: waterjar.Run, glyphs: ImageData, tmp_path: Path) -> None:
    """The train images at the end, shown to a network with the weights of the last snapshot, by hand."""
    config = tiny(recording=Recording(weights=True, examples=True, train_examples=5))
    trainer = Einstellung(config, glyphs, device="cpu")
    network, flat, start = trainer.learner.network.eval(), recorded.array("weights/weights")[-1, 0], 0
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.copy_(torch.from_numpy(flat[start : start + tensor.numel()]).reshape(tensor.shape))
            start += tensor.numel()
    examples = recorded.load("examples").isel(repeat=0)
    own = examples.isel(example=(examples["eval_set"].values == "train") & (examples["task"].values == 0))
    place = {int(one): row for row, one in enumerate(glyphs.train_index)}
    images = torch.from_numpy(glyphs.train_images[[place[int(i)] for i in own["sample_index"].values]]).float() / 255
    images = images.permute(0, 3, 1, 2) if images.shape[-1] == 3 else images
    inputs = (images - trainer.scale.mean.view(1, 3, 1, 1)) / trainer.scale.std.view(1, 3, 1, 1)
    with torch.no_grad():
        logits = network(inputs).numpy()
    label = own["label"].values
    others = np.where(np.arange(logits.shape[1]) == label[:, None], -np.inf, logits).max(1)
    expected = logits[np.arange(len(label)), label] - others
    np.testing.assert_allclose(own["margin"].values[-1], expected, rtol=2e-3, atol=2e-3)  # half floats


def test_outputs_are_the_logits_of_the_examples(glyphs: ImageData, tmp_path: Path) -> None:
    """Their margins are those that are recorded, and nothing else changes."""
    plain = einstellung(tmp_path / "plain", glyphs, examples=True)
    run = einstellung(tmp_path / "with", glyphs, examples=True, outputs=True)
    assert set(run.groups) - set(plain.groups) == {"outputs"}
    examples, outputs = run.load("examples").isel(repeat=0), run.load("outputs").isel(repeat=0)
    np.testing.assert_array_equal(examples["correct"].values, plain.load("examples")["correct"].values[:, 0])
    label, logits = examples["label"].values, outputs["logits"].values.astype(float)[-1]
    others = np.where(np.arange(logits.shape[1]) == label[:, None], -np.inf, logits).max(1)
    margin = logits[np.arange(len(label)), label] - others
    np.testing.assert_allclose(examples["margin"].values[-1], margin, rtol=2e-3, atol=4e-3)
    with pytest.raises(ValueError, match="outputs are those of examples"):
        Recording(outputs=True)


def test_scenarios_have_the_same_examples(recorded: waterjar.Run, glyphs: ImageData, tmp_path: Path) -> None:
    other = einstellung(tmp_path, glyphs, "scratch_t2", examples=True, train_examples=5).load("examples")
    for name in ("eval_set", "sample", "label", "sample_index", "task"):
        np.testing.assert_array_equal(other[name].values, recorded.load("examples")[name].values)


def test_binary_tasks(tmp_path: Path) -> None:
    glyphs = data.load("glyphs", **BINARY_GLYPHS)
    run = binary(tmp_path / "with", glyphs, examples=True, train_examples=4)
    same_but_for_examples(run, binary(tmp_path / "without", glyphs))
    examples, performance = run.load("examples"), run.load("performance")
    for place, name in enumerate(performance["eval_set"].values):
        here = examples["eval_set"].values == name
        expected = performance["accuracy"].values[:, place]
        np.testing.assert_allclose(examples["correct"].values[..., here].mean(-1), expected, atol=1e-12)
        assert (examples["task"].values[:, here] == place).all()
    classes = run.array("probe_samples/task_class")  # (repeat, task, label)
    fine = {"train": dict(zip(glyphs.train_index.tolist(), glyphs.train_labels.tolist(), strict=True))}
    fine["test"] = dict(zip(glyphs.test_index.tolist(), glyphs.test_labels.tolist(), strict=True))
    for repeat in range(2):
        own = examples.isel(repeat=repeat)
        for which, index, label, task in zip(
            *(own[name].values for name in ("eval_set", "sample_index", "label", "task")), strict=True
        ):
            assert fine["train" if which == "train" else "test"][int(index)] == classes[repeat, task, label]
    assert (examples["eval_set"].values == "train").sum() == 3 * 4
    stacked = binary(tmp_path / "vmap", glyphs, "vmap", examples=True, train_examples=4)
    np.testing.assert_array_equal(stacked.array("examples/sample_index"), run.array("examples/sample_index"))


def test_train_examples_need_examples() -> None:
    with pytest.raises(ValueError, match="expected examples: true"):
        Recording(train_examples=3)
    assert "examples" not in Recording().model_dump()
    assert Recording(examples=True).model_dump()["examples"] is True
