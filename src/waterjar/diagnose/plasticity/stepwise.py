"""Numbers that a training loop or a probe recorded at single steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.labelled import NOT_A_NUMBER
from waterjar.diagnose.snapshots import Recording

PROBE_STEP, PROBE_REASON = "_step", "_why"
"""What probe/ records beside the numbers of a probe: the step of each, and why it is missing."""


@dataclass(frozen=True)
class Series:
    """Values (moment, repeat) at labelled steps, and why some are missing."""

    labels: list[int]
    values: NDArray[np.float64]
    reasons: NDArray[np.uint8]


def logged(recording: Recording, group: str, name: str) -> Series | None:
    """A variable (step, repeat) of a step group."""
    key = f"{group}/{name}"
    if key not in recording:
        return None
    values = np.asarray(recording.whole(key), np.float64)
    reasons = np.where(np.isnan(values), NOT_A_NUMBER, 0).astype(np.uint8)
    if f"{key}_reason" in recording:
        reasons = np.asarray(recording.whole(f"{key}_reason"), np.uint8)
    return Series([int(label) for label in recording.whole(f"{group}/step")], values, reasons)


def probed(recording: Recording, name: str) -> Series | None:
    """A variable (repeat, moment) of /probes, as `waterjar.probe.ProbeLog` writes it."""
    key = f"probes/{name}"
    if key not in recording:
        return None
    steps = recording.whole(key + PROBE_STEP)
    values = np.asarray(recording.whole(key), np.float64).T
    reasons = np.asarray(recording.whole(key + PROBE_REASON), np.uint8).T
    return Series([int(step) for step in steps[0]], values, reasons)
