"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from recording import record


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return record(tmp_path / "run")
