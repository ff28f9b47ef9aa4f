"""The study of `two_methods`, once to look at and once to write into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from front.two_methods import write


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be touched, but for its cache."""
    return write(tmp_path_factory.mktemp("front") / "study")


@pytest.fixture
def mine(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "study"))
