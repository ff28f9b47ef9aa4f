"""Numbers that a training loop or a probe recorded at single steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waterjar.diagnose.result import NOT_A_NUMBER, NOT_RECORDED, Codes, Floats, Result
from waterjar.diagnose.snapshots import PROBE_REASON, PROBE_STEP, RunArrays, mean_of_last
from waterjar.run.schema import REASON


@dataclass(frozen=True)
class StepSeries:
    """What a run recorded step by step, read by name: as it stands at the snapshots, and the last of it."""

    arrays: RunArrays
    snapshots: Sequence[int]
    """Labels of the snapshots, which are those of steps."""

    def read(self, key: str) -> tuple[Result, dict[str, Result]]:
        """`train/<name>` or `probes/<name>` over (repeat, snapshot), and beside it the last recorded one (repeat).

        The last one is called `<name>_final`; it need not have been recorded at a snapshot.
        """
        repeats = len(self.arrays.seeds)
        labels, values, reasons = self._recorded(key) or ([], *_nothing(repeats, 1))
        found, why = _nothing(repeats, len(self.snapshots))
        place = {label: i for i, label in enumerate(self.snapshots)}
        for i, label in enumerate(labels):
            if label in place:
                found[:, place[label]], why[:, place[label]] = values[:, i], reasons[:, i]
        last = mean_of_last(values[:, -1:], reasons[:, -1:])
        return Result.of(found, why), {f"{key.rpartition('/')[2]}_final": last}

    def _recorded(self, key: str) -> tuple[list[int], Floats, Codes] | None:
        """Labels of steps, values (repeat, step) and why some are missing; None if it was not recorded.

        A probe is a group of its own; in runs of schema 1 its numbers are (repeat, moment), beside the steps of these.
        """
        of_moments = key + PROBE_STEP in self.arrays
        if not of_moments and key.startswith("probes/"):
            key = f"{key}/{key.rpartition('/')[2]}"
        if key not in self.arrays:
            return None
        values = np.asarray(self.arrays.whole(key), np.float64)
        if of_moments:
            steps, why = self.arrays.whole(key + PROBE_STEP)[0], key + PROBE_REASON
        else:
            steps, why = self.arrays.whole(f"{key.rpartition('/')[0]}/step"), key + REASON
        reasons = np.zeros(values.shape, np.uint8)
        if why in self.arrays:
            reasons = np.asarray(self.arrays.whole(why), np.uint8)
        reasons = np.where(np.isnan(values) & (reasons == 0), np.uint8(NOT_A_NUMBER), reasons)
        return [int(step) for step in steps], *((values, reasons) if of_moments else (values.T, reasons.T))


def _nothing(repeats: int, count: int) -> tuple[Floats, Codes]:
    return np.full((repeats, count), np.nan), np.full((repeats, count), NOT_RECORDED, np.uint8)
