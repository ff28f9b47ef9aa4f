"""What a run needs so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack
from waterjar.run.reader import Run

_PROBES = ("probes/robustness", "probes/stream_failure")


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """Answers under shifts, under attacks, or without some streams."""
    if not any(key == probe or key.startswith(f"{probe}/") for key in run.nodes for probe in _PROBES):
        yield Lack(
            "nobody asked the network under shifts, attacks or failing streams",
            "waterjar.probe.record_robustness(recorder, waterjar.probe.robustness(models, images, labels))",
        )
