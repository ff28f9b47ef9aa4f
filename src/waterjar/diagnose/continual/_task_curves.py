"""What all metrics of this family look at: the curves of one cell, task by task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.continual._arrays import Bools, learned, own_curves
from waterjar.diagnose.continual._chance import above_chance
from waterjar.diagnose.continual._integrate import integrate
from waterjar.diagnose.continual._phases import Phases
from waterjar.diagnose.result import CHANCE_UNKNOWN, NOT_RECORDED, Codes, Floats, Result


@dataclass(frozen=True)
class TaskCurves:
    """Raw accuracy (or loss) of a cell, by train task, eval task and epoch, and of the fresh expert of each task.

    A task that is trained again has a row, and a column, for every visit (see `_visits`).
    """

    tasks: tuple[int, ...]
    """The task of every visit in the order of training; both `train_task` and `eval_task` run over visits."""
    trained: tuple[int, ...]
    """The same; none where all were trained at once, and `tasks` are those of `eval_sets`."""
    eval_sets: dict[int, str]
    """Every task that is trained or has an eval set -> that set; empty where there is none."""
    network: Phases
    """(repeat, train_task, eval_task)."""
    overall: Phases
    """(repeat, phase, task): the same over every task of `eval_sets`; of joint training its one phase."""
    counted: Bools
    """(phase, task): seen so far. A task that the run never trains on its own counts all along."""
    final: Floats
    """(repeat, task) over every task of `eval_sets`: raw, at the end of the last phase, joint or not."""
    final_reasons: Codes
    lacking: Codes
    """(repeat,): why a number over all tasks' own training is missing: some were never trained. Else 0."""
    initial: Floats
    """(repeat, task): before any training."""
    initial_reasons: Codes
    expert: Phases
    """(repeat, task): each task's fresh network, on that task."""
    chance: Floats
    """(task,); NaN where it is not needed, or not known."""
    chance_note: str
    """What is to be done where chance is needed and not known; else empty."""
    settings: Any

    @property
    def is_loss(self) -> bool:
        """Whether the numbers are losses: no chance to correct for, and lower is better."""
        return bool(self.settings.metric_type == "loss")

    @property
    def sign(self) -> float:
        """Turns a loss round, so that differences of ends mean the same as those of accuracies."""
        return -1.0 if self.is_loss else 1.0

    @property
    def raw(self) -> Floats:
        """(repeat, train_task, eval_task, epoch): whole curves."""
        return self.network.curves

    @property
    def epochs(self) -> Floats:
        """(train_task, epoch)."""
        return self.network.epochs

    @property
    def reasons(self) -> Codes:
        """(repeat, train_task, eval_task): why a whole curve is missing."""
        return self.network.reasons

    @property
    def end_reasons(self) -> Codes:
        """(repeat, train_task, eval_task): why the end of a curve is missing."""
        return self.network.end_reasons

    @worked_out
    def ends(self) -> Floats:
        """(repeat, train_task, eval_task): raw, at the end of each task; of a loss with its sign turned."""
        return self.sign * self.network.ends

    @worked_out
    def corrected(self) -> Floats:
        """(repeat, train_task, eval_task, epoch): above chance; a loss as it is."""
        return self._above_chance(self.raw, self.chance[:, None])

    @worked_out
    def corrected_ends(self) -> Floats:
        """(repeat, train_task, eval_task): above chance at the end of each task; a loss as it is."""
        return self._above_chance(self.network.ends, self.chance)

    @property
    def corrected_reasons(self) -> Codes:
        """(repeat, train_task, eval_task): why `corrected` is missing."""
        return self._or_chance(self.reasons)

    @property
    def corrected_end_reasons(self) -> Codes:
        """(repeat, train_task, eval_task): why `corrected_ends` are missing."""
        return self._or_chance(self.end_reasons)

    @worked_out
    def integrated(self) -> Floats:
        """R (repeat, train_task, eval_task): above chance, integrated over the epochs of each train task."""
        if self._by_end:
            return self.corrected_ends
        return integrate(self.corrected, self.epochs[:, None, :], self.settings.integrator)

    @property
    def integrated_reasons(self) -> Codes:
        """(repeat, train_task, eval_task): why R is missing; `final` needs the end alone."""
        return self.corrected_end_reasons if self._by_end else self.corrected_reasons

    @worked_out
    def beside_expert(self) -> tuple[Floats, Codes]:
        """(repeat, task): each task's own R over the epochs that its expert has, and why it is missing.

        An expert that was not evaluated at epoch 0 is not held against a curve that begins there.
        """
        if self._by_end:
            return learned(self.integrated), learned(self.integrated_reasons)
        begin = np.nan_to_num(self.expert.epochs[:, :1])  # of a task without an expert it does not matter
        own = np.where(self.epochs >= begin, own_curves(self.corrected), np.nan)
        return integrate(own, self.epochs, self.settings.integrator), learned(self.integrated_reasons)

    @worked_out
    def expert_integrated(self) -> tuple[Floats, Codes]:
        """E (repeat, task): the experts, above chance, by the same integrator, and why they are missing.

        One evaluation of the expert cannot be held against the mean or area of a whole curve: `not_recorded`.
        """
        if self._by_end:
            return self._above_chance(self.expert.ends, self.chance), self.expert.end_reasons
        corrected = self._above_chance(self.expert.curves, self.chance[:, None])
        values = integrate(corrected, self.expert.epochs, self.settings.integrator)
        of_expert, of_network = (np.isfinite(curves).sum(-1) for curves in (self.expert.curves, own_curves(self.raw)))
        end_only = (of_expert == 1) & (of_network > 1)
        reasons = np.where(end_only, np.uint8(NOT_RECORDED), self.expert.reasons)
        return np.where(end_only, np.nan, values), reasons

    def over_all(self, values: Floats, reasons: Codes) -> Result:
        """One number per repeat that asks for the training of all tasks.

        Where some were never trained it is missing for that reason, not taken over fewer tasks than elsewhere.
        """
        return Result.of(np.where(self.lacking > 0, np.nan, values), np.where(self.lacking > 0, self.lacking, reasons))

    @property
    def _by_end(self) -> bool:
        return bool(self.settings.integrator == "final")

    def _or_chance(self, reasons: Codes) -> Codes:
        """Why values above chance are missing: because the raw ones are, else because chance is not known."""
        return np.where(reasons > 0, reasons, np.uint8(CHANCE_UNKNOWN if self.chance_note else 0))

    def _above_chance(self, values: Floats, chance: Floats) -> Floats:
        if self.is_loss:
            return values
        if np.isnan(chance).any():
            return np.full(values.shape, np.nan)
        return above_chance(values, chance, floor_at_chance=self.settings.floor_at_chance)
