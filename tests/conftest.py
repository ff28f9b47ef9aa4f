"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from recording import record

# The same examples every time: a red CI says something about the change, not about the dice.
# HYPOTHESIS_PROFILE=explore looks for new ones; `make slow` and `make oracle` do.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


# Collecting makes hundreds of thousands of objects that all stay, and looking through them again and again takes a
# quarter of it. They are set aside once they are there; whatever the tests make is collected as ever.
gc.disable()


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
