"""From steps to phases of training: the curves of each task, their ends, and why any of it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.continual._arrays import Bools, learned, own_curves
from waterjar.diagnose.result import NOT_A_NUMBER, NOT_RECORDED, RUN_ENDED, Codes, Floats
from waterjar.errors import WaterjarError

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Phases:
    """Raw accuracy (or loss) by phase of training: over (repeat, phase, task), or (repeat, task) of tasks' own phases.

    Whole curves and their ends are missing for different reasons. An evaluation that is `not_a_number` takes away
    the curve it stands in, but not the end, unless it is the end. A phase that a run has not finished has neither.
    Evaluations that were not made are passed over: the curve runs over those that were, the end is the last of them.
    """

    curves: Floats
    """(..., epoch), NaN where there was no evaluation, and as a whole where `reasons` has one."""
    reasons: Codes
    ends: Floats
    end_reasons: Codes
    epochs: Floats
    """(phase, epoch), padded with NaN."""

    def of_tasks(self, places: Sequence[int]) -> Phases:
        """Of (repeat, phase, task): some of the tasks."""
        if list(places) == list(range(self.ends.shape[-1])):
            return self
        some = np.s_[:, :, list(places)]
        return Phases(self.curves[some], self.reasons[some], self.ends[some], self.end_reasons[some], self.epochs)

    def of_own_task(self) -> Phases:
        """(repeat, phase, task) -> (repeat, task): each task in its own phase."""
        return Phases(
            own_curves(self.curves), learned(self.reasons), learned(self.ends), learned(self.end_reasons), self.epochs
        )

    def of_repeats(self, places: Sequence[int]) -> Phases:
        """The repeats at these places; -1 for one that is not there: `not_recorded`."""
        rows, absent = np.array(places), np.array(places) < 0
        curves, reasons, ends, end_reasons = (
            self.curves[rows],
            self.reasons[rows],
            self.ends[rows],
            self.end_reasons[rows],
        )
        curves[absent] = ends[absent] = np.nan
        reasons[absent] = end_reasons[absent] = NOT_RECORDED
        return Phases(curves, reasons, ends, end_reasons, self.epochs)


def nothing(shape: tuple[int, ...], reason: int) -> Phases:
    """Phases of this shape, without the epochs, in which everything is missing for one reason."""
    codes = np.full(shape, reason, np.uint8)
    gone = np.full(shape, np.nan)
    return Phases(gone[..., None], codes, gone, codes, np.full((shape[1], 1), np.nan))


def finished(rows: Sequence[Rows], last_row: NDArray[np.int64], is_open: Bools) -> Bools:
    """(repeat, phase): whether a run has the end of a phase.

    A closed run has it when it got as far as the longest run of its cell; one that is still open (or was interrupted)
    only when it has gone on to something else.
    """
    ends = np.array([found[-1] if len(found) else -1 for found in rows], np.int64)
    found: Bools = last_row[:, None] >= ends + is_open[:, None]
    return found


def cut(
    values: Floats,
    codes: Codes,
    epoch: Floats,
    rows: Sequence[Rows],
    done: Bools,
    where: str,
    *,
    goes_on: bool = True,
) -> Phases:
    """(repeat, task, step) -> phases of training, `rows` being the steps of each, `done` (repeat, phase).

    Where one network goes on from phase to phase and a phase has no epoch 0, the last evaluation before it is its epoch
    0: the network as it enters the phase. It belongs to the curve; an end is always one of the phase's own.
    """
    repeats, tasks, _ = values.shape
    longest = max((len(found) for found in rows), default=0) + 1
    curves = np.full((repeats, len(rows), tasks, longest), np.nan)
    epochs = np.full((len(rows), longest), np.nan)
    ends = np.full((repeats, len(rows), tasks), np.nan)
    reasons = np.full(ends.shape, NOT_RECORDED, np.uint8)
    end_reasons = reasons.copy()
    used = 1
    for i, found in enumerate(rows):
        if not len(found):
            continue
        times = epoch[found]
        if (np.diff(times) <= 0).any():
            raise WaterjarError(
                f"{where}: the epochs of a task do not rise: {times.tolist()}. Expected one curve, over rising epochs"
            )
        lead = int(goes_on and times[0] > 0 and found[0] > 0)
        size = lead + len(found)
        used = max(used, size)
        first = found[0] - lead
        whole = found[-1] - found[0] + 1 == len(found)  # as it should be; then nothing need be copied
        place = slice(first, found[-1] + 1) if whole else np.concatenate([np.arange(first, found[0]), found])
        part, why = values[..., place], codes[..., place]
        curves[:, i, :, :size] = part
        epochs[i, lead:size] = times
        epochs[i, :lead] = 0.0
        ends[:, i], end_reasons[:, i] = _ends(part[..., lead:], why[..., lead:])
        reasons[:, i] = _why_missing(why, lead)
        reasons[~done[:, i], i] = end_reasons[~done[:, i], i] = RUN_ENDED
    curves = curves[..., :used]
    if reasons.any():
        curves[reasons > 0] = np.nan
    if end_reasons.any():
        ends[end_reasons > 0] = np.nan
    return Phases(curves, reasons, ends, end_reasons, epochs[:, :used])


def _ends(part: Floats, why: Codes) -> tuple[Floats, Codes]:
    """(repeat, task): the last evaluation that was made, and why there is none; it may have been `not_a_number`."""
    if not why[..., -1].any():
        return part[..., -1], why[..., -1]
    made = (why == 0) | (why == NOT_A_NUMBER)
    last = np.where(made.any(-1), made.shape[-1] - 1 - made[..., ::-1].argmax(-1), made.shape[-1] - 1)[..., None]
    return np.take_along_axis(part, last, -1)[..., 0], np.take_along_axis(why, last, -1)[..., 0]


def _why_missing(why: Codes, lead: int) -> Codes:
    """(repeat, task): why a curve as a whole is missing; 0 if it is there. What came before is no curve by itself."""
    if not why.any():
        return np.zeros(why.shape[:2], np.uint8)
    broken = (why == NOT_A_NUMBER).any(-1)
    some = (why[..., lead:] == 0).any(-1)
    found: Codes = np.where(broken, NOT_A_NUMBER, np.where(some, 0, why[..., -1])).astype(np.uint8)
    return found
