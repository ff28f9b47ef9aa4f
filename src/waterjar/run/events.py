"""What happened during a run, as it was noted in /events."""

from __future__ import annotations

from typing import NamedTuple

from waterjar.run.reader import Run
from waterjar.run.schema import EVENT_COLUMNS


class Event(NamedTuple):
    """A row of /events."""

    step: int
    """The last step before it; -1 before the first."""
    time: float
    """Seconds since 1970; NaN where it was not kept."""
    seed: int | None
    """Of the repeat that it concerns; None for all of them."""
    level: str
    kind: str
    message: str


def events_of(run: Run) -> list[Event]:
    """All of them, in the order in which they were noted; nothing where there are none."""
    keys = [f"events/{name}" for name in EVENT_COLUMNS]
    if any(key not in run.nodes for key in keys):  # runs of schema 1 may have a group of that name for something else
        return []
    columns = dict(zip(EVENT_COLUMNS, (run.array(key).tolist() for key in keys), strict=True))
    seeds = [dict(enumerate(run.seeds)).get(repeat) for repeat in columns.pop("event_repeat")]
    return [
        Event(step, time, seed, level, kind, message)
        for seed, (step, time, level, kind, message) in zip(seeds, zip(*columns.values(), strict=True), strict=True)
    ]
