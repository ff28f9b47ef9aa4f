"""The power is cut during a training, on a disk that forgets what was not synced: the same command goes on with it.

What was not synced is gone, there in part, torn, or there without what came before it (see `forgetful`); a training of
either kind goes on from its last checkpoint to the very numbers that it would have had.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import waterjar
from lab.binary.tiny_binary import ALL_OPTIONS
from lab.binary.tiny_binary import tiny as tiny_binary
from recording import content
from run.forgetful import FATES, taped
from tiny_lab import tiny
from waterjar.lab import checkpoint
from waterjar.lab.binary import train_binary
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import train
from waterjar.run import store

pytestmark = pytest.mark.torch
Go = Callable[[ImageData, Path], object]


def numbers(folder: Path) -> dict[str, str]:
    assert waterjar.verify(folder / "run").state == "sealed"
    return {key: value for key, value in content(folder / "run").items() if not key.startswith("resources/")}


def einstellung(scenario: str, learner: str) -> Go:
    def go(data: ImageData, folder: Path) -> object:
        how: dict[str, Any] = {"checkpoints": folder / "c", "device": "cpu", "checkpoint_seconds": 0.02}
        return train(tiny(scenario, learner), data, folder / "run", **how)

    return go


def binary(engine: str, **changes: Any) -> Go:
    def go(data: ImageData, folder: Path) -> object:
        how: dict[str, Any] = {"checkpoints": folder / "c", "device": "cpu", "checkpoint_seconds": 0.02}
        return train_binary(tiny_binary(**changes), data, folder / "run", engine=engine, **how)

    return go


def cut_often(go: Go, data: ImageData, tmp_path: Path, cuts: int) -> list[bool]:
    """Cut a training in so many places, and go on; returns of each whether it went on from a checkpoint."""
    (tmp_path / "real").mkdir()
    with taped(tmp_path / "real") as tape:
        go(data, tmp_path / "real")
    expected, rng, resumed = numbers(tmp_path / "real"), random.Random(cuts), []
    for i in range(cuts):
        until = round((i + rng.random()) / cuts * len(tape.calls))
        place = tmp_path / f"cut{i}"
        tape.cut(until, FATES[-1 - i % len(FATES)], rng, place)
        with pytest.MonkeyPatch.context() as patch:
            load, found = checkpoint.load, []
            patch.setattr(checkpoint, "load", lambda *which: (found.append(load(*which)), found[-1])[1])  # noqa: B023
            go(data, place)
        resumed.append(any(one is not None for one in found))
        assert numbers(place) == expected, (i, until)
        assert not (place / "c" / checkpoint.LAST).exists()
    return resumed


@pytest.fixture(autouse=True)
def _slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """So slow that only a checkpoint waits for it."""
    monkeypatch.setattr(store, "_PAUSE", 1e9)


@pytest.mark.parametrize(
    "go", [einstellung("scratch_t2", "sgd"), binary("loop", tasks={"number": 1}, recording={})], ids=["t2", "binary"]
)
def test_power_is_cut_a_few_times(go: Go, glyphs: ImageData, tmp_path: Path) -> None:
    cut_often(go, glyphs, tmp_path, cuts=2)


WITH_MEMORY = {"learner": "rl", "options": ALL_OPTIONS, "multitask": True, "random_baseline": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    "go",
    [
        einstellung("scratch_t2", "sgd"),
        einstellung("sequential", "derpp"),
        binary("loop", **WITH_MEMORY, training={"epochs": 2, "batch_size": 16, "optimiser": {"name": "adam"}}),
        binary("vmap", **WITH_MEMORY),
    ],
    ids=["scratch_t2", "derpp", "binary-loop", "binary-vmap"],
)
def test_power_is_cut_often(go: Go, glyphs: ImageData, tmp_path: Path) -> None:
    resumed = cut_often(go, glyphs, tmp_path, cuts=24)
    assert sum(resumed) >= 8  # in the middle of the training, and not before its first checkpoint or after its last
