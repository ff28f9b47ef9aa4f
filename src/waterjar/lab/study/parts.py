"""What declarations of every kind of study have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab import data as data_sets
from waterjar.lab.config import Count, Device
from waterjar.run.faults import Behind

STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
MOST_RUNS = 10_000
"""A sweep over many settings is soon more runs than anybody can train."""


class Data(BaseModel):
    """Which data set; settings are those of its module."""

    model_config = STRICT

    name: str = "glyphs"
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the data set."""
        return data_sets.SHELF.behind(values.get("name", "glyphs"), at)


class Resources(BaseModel):
    """How it is computed. Nothing here changes a number, so nothing here is part of a run's identity."""

    model_config = STRICT

    workers: Count = 1
    """Runs at a time."""
    threads: Count = 1
    """Threads of torch in each of them. Sums in another order round otherwise, so keep it over a study."""
    device: Device = "auto"
    checkpoint_seconds: Annotated[float, Field(gt=0.0)] = 60.0
    """Between two checkpoints of a run."""
    gpu_memory_limit: Annotated[float, Field(gt=0.0)] | None = None
    """Megabytes (10^6 bytes) that a run may take on a CUDA device; see `notes` for what is told about it."""
    checkpoint_frequency: Literal["task"] | None = None
    """Accepted, and not acted on: checkpoints are written every `checkpoint_seconds`."""


def faulty(where: str, found: list[str]) -> WaterjarError:
    """All faults of a declaration in one error, a line each."""
    return WaterjarError("\n".join(f"{where}: {fault}" for fault in found))


def check_number(runs: int, combined: int, where: str) -> None:
    """Refuse what would expand for hours, before it does."""
    if runs > MOST_RUNS:
        raise WaterjarError(
            f"{where}: that would be {runs} runs, {combined} combinations of the sweep among them; "
            f"at most {MOST_RUNS} are one study"
        )
