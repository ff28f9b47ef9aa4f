"""No test here may move a global generator, because nothing that it calls may."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _global_generators_stand_still() -> Iterator[None]:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    yield
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
