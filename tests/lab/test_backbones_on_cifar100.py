"""One short ResNet-18 and one short ViT run on CIFAR-100, end to end: they learn, and resume to the bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import waterjar
from waterjar.lab import data, networks
from waterjar.lab.config import Recording, RunConfig, Training
from waterjar.lab.data import ImageData, image_data
from waterjar.lab.einstellung import Einstellung, train
from waterjar.lab.evaluation import EVAL_SETS

pytestmark = [pytest.mark.torch, pytest.mark.slow]

FILE = Path(__file__).resolve().parents[2] / "../shared/data/cifar100_12super.npz"
TRAIN, TEST = 200, 20
"""Images of each class: enough to learn something in one epoch, in a minute or two."""


@pytest.fixture(scope="module")
def cifar() -> ImageData:
    """The first images of each class, under their own ids."""
    if not FILE.exists():
        pytest.skip("CIFAR-100 is not here")
    whole = data.load("cifar100", path=FILE)
    parts: dict[str, Any] = {}
    for split, count in (("train", TRAIN), ("test", TEST)):
        labels = getattr(whole, f"{split}_labels")
        rows = np.sort(np.concatenate([np.flatnonzero(labels == c)[:count] for c in whole.present_classes]))
        parts[split] = tuple(getattr(whole, f"{split}_{what}")[rows] for what in ("images", "labels", "index"))
    return image_data(
        "cifar100",
        **parts,
        class_names=whole.class_names,
        superclass_names=whole.superclass_names,
        class_superclass=whole.class_superclass,
    )


def above_chance(classes: int, images: int) -> float:
    """Four standard deviations above what guessing gives."""
    p = 1 / classes
    return p + 4 * math.sqrt(p * (1 - p) / images)


@pytest.mark.parametrize(
    ("backbone", "size", "learner", "settings"),
    [
        ("resnet18", {"width": 8}, "ewc_on", {"lr": 0.05, "fisher_samples": 200}),
        ("vit", {"dim": 32, "depth": 2}, "derpp", {"lr": 0.05, "buffer_size": 200}),
    ],
)
def test_end_to_end(
    cifar: ImageData,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backbone: str,
    size: dict[str, int],
    learner: str,
    settings: dict[str, Any],
) -> None:
    config = RunConfig(
        scenario="sequential",
        learner=learner,
        learner_settings=settings,
        backbone=backbone,
        backbone_settings=networks.parse(backbone, size).model_dump(mode="json"),
        data="cifar100",
        training=Training(epochs_t1=1, epochs_t2=1, batch_size=16),
        recording=Recording(features=("penultimate",), samples=20, weights=True),
        seed=1,
    )
    run = go(config, cifar, tmp_path / "whole")
    performance = run["performance"].isel(repeat=0).load()
    assert performance.train_task.values.tolist() == ["t1", "t1", "t2", "t2"]
    assert performance.eval_set.values.tolist() == list(EVAL_SETS)
    assert np.isfinite(performance.loss.values).all()
    accuracy = performance.task_accuracy
    shown = {name: accuracy.sel(eval_set=name).values.round(3).tolist() for name in EVAL_SETS}
    assert shown["t1_all"][1] > above_chance(40, 40 * TEST), shown
    assert shown["t2_all_normal"][3] > above_chance(20, 20 * TEST), shown
    assert (run["train"].loss.values < math.log(60)).all()  # 60 classes compete: below what guessing costs
    resources = run["resources"]
    trainer = Einstellung(config, cifar, device="cpu")
    unit = 3 * networks.flops(trainer.learner.network)
    assert (resources.flops.values[[1, 3]] > unit * resources.images.values[[1, 3]]).all()  # Fisher, replay
    assert run["features/penultimate"].sizes["snapshot"] == run["weights"].sizes["snapshot"] == 4
    assert waterjar.verify(run.path).state == "sealed"

    # Stopped in the middle of T1's epoch and of T2's, and gone on from the checkpoint each time.
    kind = type(trainer.learner)
    observe, left = kind.observe, {"count": 0}

    def stop_some_time(self: object, inputs: object, labels: object, epoch: int = 0) -> object:
        left["count"] -= 1
        if left["count"] == 0:
            raise KeyboardInterrupt
        return observe(self, inputs, labels, epoch)

    monkeypatch.setattr(kind, "observe", stop_some_time)
    for stop in (200, 400):
        left["count"] = stop
        with pytest.raises(KeyboardInterrupt):
            go(config, cifar, tmp_path / "stopped", checkpoint_seconds=1.0)
    left["count"] = -1
    resumed = go(config, cifar, tmp_path / "stopped")
    assert len(resumed.attributes["provenance"]["sessions"]) == 3
    assert resumed.attributes["seal"]["content"] == run.attributes["seal"]["content"]


def go(config: RunConfig, images: ImageData, folder: Path, **options: float) -> waterjar.Run:
    path = train(config, images, folder / "run", checkpoints=folder / "checkpoints", device="cpu", **options)
    return waterjar.open_run(path)
