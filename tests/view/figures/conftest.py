"""Small studies that the tests of figures share: curves chosen by hand, features drawn once."""

from __future__ import annotations

import pytest

import waterjar
from recording import einstellung
from view.figures.whole_runs import measured, whole_run
from waterjar.diagnose.study import Diagnosis


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """Two learners beside a fresh network, three seeds, everything measured."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("whole") / "study")
    for seed in (1, 2, 3):
        whole_run(folder / f"scratch-{seed}", "scratch_t2", seed, scenario="scratch_t2")
        whole_run(folder / f"sgd-{seed}", "sgd", seed, value=0.7)
        whole_run(folder / f"er-{seed}", "er", seed, value=0.9)
    return measured(waterjar.open_study(folder))


@pytest.fixture(scope="session")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    """Patched accuracy rises to 0.8 in four epochs, `late` one epoch late; `low` stays below 0.54."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("by_hand") / "study")
    for seed in (1, 2, 3):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
        einstellung(folder / f"late-{seed}", learner="late", seed=seed, masked=0.1 + 0.02 * seed, delay=1)
        einstellung(folder / f"low-{seed}", learner="low", seed=seed, final=0.5)
    return waterjar.open_study(folder)
