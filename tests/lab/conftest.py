"""A data set small enough to train on in a second."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tiny_lab import GLYPHS
from waterjar.lab import data
from waterjar.lab.data import ImageData


@pytest.fixture(scope="session")
def glyphs() -> ImageData:
    return data.load("glyphs", **GLYPHS)
