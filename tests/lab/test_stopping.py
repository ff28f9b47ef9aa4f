"""A training that is told to stop writes a checkpoint first, in the middle of an epoch, and goes on from there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import waterjar
from lab.study.test_every_field import BASE
from tiny_lab import GLYPHS, tiny
from waterjar.lab import checkpoint, data, stopping
from waterjar.lab.binary import train_binary
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import train
from waterjar.lab.study import declare, expand

pytestmark = pytest.mark.torch

(BINARY,) = expand(declare(BASE["binary"]))


@pytest.fixture
def _signals() -> Iterator[None]:
    """Handlers, and what was asked, as they were."""
    numbers = (signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    stopping._WORD = stopping._Word()


def einstellung(place: Path, images: ImageData) -> Path:
    return train(tiny(), images, place / "run", checkpoints=place, device="cpu", checkpoint_seconds=600.0)


def binary(place: Path, images: ImageData) -> Path:
    how = {"checkpoints": place, "device": "cpu", "engine": "loop", "checkpoint_seconds": 600.0}
    return train_binary(BINARY, images, place / "run", **how)


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize("training", [einstellung, binary])
def test_the_checkpoint_is_of_the_batch_at_which_it_was_told(
    training: Callable[[Path, ImageData], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = data.load("glyphs", **GLYPHS)
    whole = waterjar.open_run(training(tmp_path / "whole", images))
    stopping.install(60.0)
    looks = 0
    real = stopping.requested

    def told() -> bool:
        nonlocal looks
        looks += 1
        if looks == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return real()

    monkeypatch.setattr(stopping, "requested", told)
    with pytest.raises(stopping.Stopped):
        training(tmp_path / "stopped", images)
    run = waterjar.open_run(tmp_path / "stopped" / "run")
    assert run.status == "interrupted"
    found = checkpoint.load(tmp_path / "stopped", checkpoint.LAST, run.run_id)
    assert found is not None  # without it there would be one of a step at best, and of the other kind none
    assert found["position"]["batch"] + found["position"]["epoch"] > 0
    stopping._WORD = stopping._Word()
    again = waterjar.open_run(training(tmp_path / "stopped", images))
    assert again.attributes["seal"]["content"] == whole.attributes["seal"]["content"]
    assert len(again.attributes["provenance"]["sessions"]) == 2


@pytest.mark.usefixtures("_signals")
def test_what_does_not_heed_it_is_interrupted() -> None:
    stopping.install(0.2)
    with pytest.raises(KeyboardInterrupt):  # at once, where no training is under way
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5.0)
    assert stopping.requested()
    stopping._WORD = stopping._Word()
    stopping.install(0.2)
    began = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        stopping.heeded(),
    ):  # after its time, where one does not come to a batch's end
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # a cluster may say it twice
        time.sleep(5.0)
    assert 0.2 <= time.monotonic() - began < 4.0
    with pytest.raises(stopping.Stopped):
        stopping.stop_if_requested()
