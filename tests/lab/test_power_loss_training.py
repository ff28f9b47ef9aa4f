"""The power is cut during a training, on a disk that forgets what was not synced: the same command goes on with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import waterjar
from recording import content
from run.forgetful import FATES, taped
from tiny_lab import tiny
from waterjar.lab.data import ImageData
from waterjar.lab.trainer import train
from waterjar.run import store

pytestmark = pytest.mark.torch


def numbers(folder: Path) -> dict[str, str]:
    assert waterjar.verify(folder / "run").state == "sealed"
    return {key: value for key, value in content(folder / "run").items() if not key.startswith("resources/")}


def go(data: ImageData, folder: Path) -> None:
    train(tiny("scratch_t2"), data, folder / "run", checkpoints=folder / "c", device="cpu", checkpoint_seconds=0.02)


def cut_often(data: ImageData, tmp_path: Path, cuts: int) -> None:
    (tmp_path / "real").mkdir()
    with taped(tmp_path / "real") as tape:
        go(data, tmp_path / "real")
    rng = random.Random(cuts)
    for i in range(cuts):
        until = round((i + rng.random()) / cuts * len(tape.calls))
        place = tmp_path / f"cut{i}"
        tape.cut(until, FATES[i % len(FATES)], rng, place)
        go(data, place)
        assert numbers(place) == numbers(tmp_path / "real"), (i, until)


def test_power_is_cut_a_few_times(glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PAUSE", 1e9)  # a disk so slow that only a checkpoint waits for it
    cut_often(glyphs, tmp_path, cuts=2)


@pytest.mark.slow
def test_power_is_cut_often(glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PAUSE", 1e9)
    cut_often(glyphs, tmp_path, cuts=60)
