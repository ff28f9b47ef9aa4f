"""One run that a study wants, and what its kind of study does with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.lab.loop import Phase
from waterjar.run.root import read_root
from waterjar.run.store import ROOT

CHECKPOINTS = ".waterjar/checkpoints"
"""In the study's folder."""


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """A config laid over the data."""

    name: str
    """Of the run's folder, before its identity."""
    run_id: str
    images: int
    """Training images it will have seen at its end."""
    phases: tuple[Phase, ...]
    """What it trains, in this order."""
    epochs_a_step: int = 1
    """Between two recorded steps."""
    processes: int = 1
    """How many its work is shared out to."""


@dataclasses.dataclass(frozen=True)
class Job:
    """One run that a study wants."""

    kind: str
    """Of study."""
    config: Any
    plan: RunPlan
    path: Path

    @property
    def run_id(self) -> str:
        """Its identity."""
        return self.plan.run_id

    @property
    def images(self) -> int:
        """Training images it will have seen at its end."""
        return self.plan.images

    @property
    def epochs(self) -> int:
        """How many epochs it trains."""
        return sum(phase.epochs for phase in self.plan.phases)

    @property
    def status(self) -> str:
        """`todo`, `recording`, `interrupted` or `sealed`, as the disk says."""
        return str(read_root(self.path)["attributes"]["status"]) if (self.path / ROOT).exists() else "todo"

    @property
    def is_sealed(self) -> bool:
        """Whether it is complete; a damaged one is not."""
        try:
            return self.status == "sealed"
        except WaterjarError:
            return False


def checkpoints_of(path: Path) -> Path:
    """The folder of a run's checkpoints."""
    return path.parent / CHECKPOINTS / path.name
