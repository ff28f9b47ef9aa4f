"""An experiment small enough to train in a second."""

from __future__ import annotations

from typing import Any

from waterjar.lab.config import Planting, Recording, RunConfig, Tasks, Training

TASKS = Tasks(t1_superclasses=(0, 1), t2_superclasses=(2, 3), shortcut_superclasses=(3,), validation=0.25)
GLYPHS = {"alphabets": 4, "characters": 2, "train_per_class": 20, "test_per_class": 6}


def tiny(scenario: str = "sequential", learner: str = "sgd", **changes: Any) -> RunConfig:
    """A config that trains in about a second on `glyphs`."""
    settings: dict[str, Any] = {
        "scenario": scenario,
        "learner": learner,
        "learner_settings": {"lr": 0.05, **({"buffer_size": 16} if learner in ("er", "derpp") else {})},
        "backbone": "small_cnn",
        "backbone_settings": {"width": 4},
        "data": "glyphs",
        "tasks": TASKS,
        "shortcut": Planting(),
        "training": Training(epochs_t1=2, epochs_t2=3, batch_size=8),
        "recording": Recording(weights=True),
        "seed": 5,
    }
    return RunConfig(**{**settings, **changes})
