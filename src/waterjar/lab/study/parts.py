"""What declarations of every kind of study have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab import data as data_sets
from waterjar.lab.checkpoint import Keep
from waterjar.lab.config import Count, Device
from waterjar.lab.study.executors import Choice
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
    executor: Choice = Choice()
    """Where runs are computed: local, dask or slurm, with their settings; see `executors`."""
    gpu_memory_limit: Annotated[float, Field(gt=0.0)] | None = None
    """Megabytes (10^6 bytes) that a run may take on a CUDA device; see `notes` for what is told about it."""
    checkpoint_frequency: Keep = "best"
    """What is kept of a complete run beside its recording: `task`, the state after each task and the weights with the
    best validation accuracy; `best`, these weights alone; `none`, nothing."""

    def steered(self, workers: int | None, executor: Choice) -> Resources:
        """The same on another executor, or with so many runs at a time, whoever said how many before."""
        if workers is not None and "workers" in executor.settings:
            executor = executor.model_copy(update={"settings": {**executor.settings, "workers": workers}})
        return self.model_copy(update={"workers": workers or self.workers, "executor": executor})

    @property
    def at_a_time(self) -> int:
        """Runs at a time: what the executor's own settings say goes first."""
        return int(self.executor.settings.get("workers") or self.workers)


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


def with_changes(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with some of them others, by dotted keys.

    >>> with_changes({"a": {"b": 1, "c": 2}}, {"a.b": 3})
    {'a': {'b': 3, 'c': 2}}
    """
    found = dict(plain)
    for key, value in changes.items():
        first, _, rest = key.partition(".")
        if rest and not isinstance(found.get(first), Mapping):
            raise WaterjarError(f"--set {key}: {first} has no settings of its own")
        found[first] = with_changes(found[first], {rest: value}) if rest else value
    return found
