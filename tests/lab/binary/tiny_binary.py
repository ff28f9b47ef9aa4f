"""An experiment small enough to train in a second."""

from __future__ import annotations

from typing import Any

from waterjar.lab.binary import BinaryConfig, parse_config

GLYPHS = {"alphabets": 4, "characters": 2, "train_per_class": 20, "test_per_class": 6}

ALL_OPTIONS = [
    {"name": "replay", "settings": {"size": 20}},
    {"name": "l2_init"},
    {"name": "shrink_and_perturb"},
    {"name": "continual_backprop", "settings": {"maturity": 2, "replacement_rate": 0.2}},
    {"name": "redo", "settings": {"every": 3}},
]


def tiny(**changes: Any) -> BinaryConfig:
    """A config for `glyphs`: 3 tasks, 2 repeats, a perceptron."""
    settings: dict[str, Any] = {
        "data": "glyphs",
        "tasks": {"number": 3},
        "repeats": 2,
        "network": "mlp",
        "network_settings": {"hidden": [12, 8]},
        "training": {"epochs": 2, "batch_size": 16, "lr_features": 0.05, "lr_readout": 0.02},
        "recording": {"features": ["penultimate"], "weights": True, "samples": 6},
    }
    return parse_config({**settings, **changes})
