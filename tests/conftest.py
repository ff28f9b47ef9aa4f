"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from recording import record

# The same examples every time: a red CI says something about the change, not about the dice.
# HYPOTHESIS_PROFILE=explore looks for new ones; `make slow` and `make oracle` do.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return record(tmp_path / "run")
