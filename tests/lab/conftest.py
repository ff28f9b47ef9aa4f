"""A data set small enough to train on in a second; and no test may move a global generator: nothing it calls may."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tiny_lab import GLYPHS
from waterjar.lab import data
from waterjar.lab.data import ImageData


@pytest.fixture(scope="session")
def glyphs() -> ImageData:
    return data.load("glyphs", **GLYPHS)


@pytest.fixture(autouse=True)
def _global_generators_stand_still(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.parent.name in ("study", "executors"):  # what starts processes may; who trains in them may not
        yield
        return
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    yield
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
