"""Continual binary tasks: T tasks of K classes, R repeats at once, supervised or by reinforcement, beside experts.

`train_binary(BinaryConfig(...), data, path, checkpoints=...)` writes one run with all repeats. A learner, an option, an
optimiser or a network is one file in its folder with a pydantic `Settings`; its file name is its name.
"""

from __future__ import annotations

from waterjar.lab.binary.class_tasks import ClassTasks, draw_tasks
from waterjar.lab.binary.config import BinaryConfig, parse_config
from waterjar.lab.binary.engines import ENGINES
from waterjar.lab.binary.experiment import run_id_of, train_binary

__all__ = [
    "ENGINES",
    "BinaryConfig",
    "ClassTasks",
    "draw_tasks",
    "parse_config",
    "run_id_of",
    "train_binary",
]
