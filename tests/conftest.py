"""Fixtures that all tests share."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import outside
from recording import record

collect_ignore = ["parts_from_outside"]  # a package by itself, one part of which is broken

# The same examples every time: a red CI says something about the change, not about the dice.
# HYPOTHESIS_PROFILE=explore looks for new ones; `make slow` and `make oracle` do.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


# Tests do not wait for the disk, which takes longer than all else where two cores share one. That what must be synced
# is synced, tests/run/test_power_loss.py shows.
os.fsync = lambda descriptor: None


# Collecting makes hundreds of thousands of objects that all stay, and looking through them again and again takes a
# quarter of it. They are set aside once they are there; what the tests make is collected, if not as often as usual.
gc.disable()
gc.set_threshold(200_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run, not to be touched."""
    return record(tmp_path_factory.mktemp("recorded") / "run")


@pytest.fixture
def run_path(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it, to do anything with."""
    return Path(shutil.copytree(recorded, tmp_path / "run"))


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder as `tmp_path`, but where the system puts such folders: `make test` has the others in memory."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that packages can be installed into, on the path of this process and of those that it starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
    yield folder
    outside.forget(folder)


@pytest.fixture
def strange_parts(site: Path) -> Path:
    """The package in tests/parts_from_outside, installed."""
    outside.install(site)
    outside.forget(site)
    return site


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call it, and from then on a file takes four bytes and no more; with `room` all files together take so many."""
    real = os.write

    def fill(room: int | None = None) -> None:
        left = room

        def write(descriptor: int, data: bytes) -> int:
            nonlocal left
            if left == 0 or (left is None and os.fstat(descriptor).st_size):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            taken = real(descriptor, bytes(data)[: 4 if left is None else left])
            left = None if left is None else left - taken
            return taken

        monkeypatch.setattr(os, "write", write)

    return fill
