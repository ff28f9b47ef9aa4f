"""What all metrics of this family look at: the curves of one cell, task by task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.continual._arrays import Bools, Floats, own_curves
from waterjar.diagnose.continual._chance import above_chance
from waterjar.diagnose.continual._integrate import integrate, last_value
from waterjar.diagnose.continual._measured import Measured
from waterjar.diagnose.continual._settings import Settings
from waterjar.diagnose.labelled import UNDEFINED

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class TaskCurves:
    """Raw accuracy (or loss) of a cell, by train task, eval task and epoch, and of the fresh expert of each task.

    A curve with a `not_a_number` in it is missing as a whole: its end, its area, its dip are not known. Other
    evaluations that are missing were not made, and the curve runs over those that were.
    """

    tasks: tuple[int, ...]
    """Trained tasks in the order of training; both `train_task` and `eval_task` run over them."""
    eval_sets: tuple[str, ...]
    """The eval set of each task; empty where there is none."""
    raw: Floats
    """(repeat, train_task, eval_task, epoch), NaN where there was no evaluation."""
    reasons: Codes
    """(repeat, train_task, eval_task): why a curve has no value at all; 0 if it has one."""
    epochs: Floats
    """(train_task, epoch), padded with NaN."""
    initial: Floats
    """(repeat, task): before any training."""
    initial_reasons: Codes
    expert: Floats
    """(repeat, task, epoch) on `expert_epochs`, (task, epoch): each task's fresh network, on that task."""
    expert_epochs: Floats
    expert_reasons: Codes
    """(repeat, task)."""
    chance: Floats
    """(task,); NaN where it is not needed."""
    settings: Settings

    @property
    def is_loss(self) -> bool:
        """Whether the numbers are losses: no chance to correct for, and lower is better."""
        return self.settings.metric_type == "loss"

    @property
    def sign(self) -> float:
        """Turns a loss round, so that differences of ends mean the same as those of accuracies."""
        return -1.0 if self.is_loss else 1.0

    @cached_property
    def corrected(self) -> Floats:
        """(repeat, train_task, eval_task, epoch): above chance; a loss as it is."""
        return self._above_chance(self.raw, self.chance[:, None])

    @cached_property
    def integrated(self) -> Floats:
        """R (repeat, train_task, eval_task): above chance, integrated over the epochs of each train task."""
        return integrate(self.corrected, self.epochs[:, None, :], self.settings.integrator)

    @cached_property
    def expert_integrated(self) -> Floats:
        """E (repeat, task): the experts, above chance, by the same integrator; NaN where only their end is known."""
        corrected = self._above_chance(self.expert, self.chance[:, None])
        values = integrate(corrected, self.expert_epochs, self.settings.integrator)
        return np.where(self.expert_end_only, np.nan, values)

    @cached_property
    def expert_end_only(self) -> Bools:
        """(repeat, task): one evaluation of the expert cannot be held against the mean or area of a whole curve."""
        if self.settings.integrator == "final":
            return np.zeros(self.expert.shape[:2], np.bool_)
        of_expert, of_network = (np.isfinite(curves).sum(-1) for curves in (self.expert, own_curves(self.raw)))
        found: Bools = (of_expert == 1) & (of_network > 1)
        return found

    @cached_property
    def ends(self) -> Floats:
        """(repeat, train_task, eval_task): raw, at the end of each task; of a loss with its sign turned."""
        return self.sign * last_value(self.raw)

    @property
    def for_accuracy_only(self) -> Measured:
        """What a metric that only accuracies have gives for a loss."""
        repeats = len(self.raw)
        return Measured(np.full(repeats, np.nan), (), np.full(repeats, UNDEFINED, np.uint8))

    def _above_chance(self, values: Floats, chance: Floats) -> Floats:
        if self.is_loss or np.isnan(chance).any():
            return values
        return above_chance(values, chance, floor_at_chance=self.settings.floor_at_chance)
