"""What a run, and the settings, need so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack
from waterjar.run.reader import Run

_SIMULATED = ("simulated_capacity", "capacity_relative_error")


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """Capacity is simulated on request alone."""
    if settings.simulate_every is None:
        yield Lack("capacity is not simulated", "--set simulate_every=1", _SIMULATED, is_telling=False)
