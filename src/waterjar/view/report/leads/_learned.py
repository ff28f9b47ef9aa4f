"""Who learned anything at all: accuracy beside chance, and beside what one constant answer would reach."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from waterjar.view.report.leads._claims import Mean, means_of
from waterjar.view.report.model import Model

LEARNED = "learning_accuracy"
HARDLY = 0.1
"""Above chance by less than this share of what there is above it: hardly learned."""


class Learning(NamedTuple):
    """How well a learner knew its tasks when it had just trained them."""

    accuracy: Mean
    chance: float
    """What guessing, or one constant answer, reaches; NaN where nobody knows."""

    def _reach(self, accuracy: float) -> float:
        """How much of what there is above chance is reached."""
        return (accuracy - self.chance) / (1 - self.chance) if self.chance < 1 else math.nan

    @property
    def at_chance(self) -> bool:
        """Near it, and not shown to be above it; three seeds at 90 % may have an interval that reaches below 50 %."""
        return self._reach(self.accuracy.mean) < HARDLY and self.accuracy.above <= self.chance + 1e-9

    @property
    def hardly(self) -> bool:
        """Above it, but surely by little."""
        return not self.at_chance and self._reach(self.accuracy.below) < HARDLY


def learning(model: Model) -> list[Learning]:
    """Every learner whose accuracy at the end of its own training was measured."""
    result = model.diagnosis.results.get("continual")
    if result is None or model.diagnosis.settings("continual").get("metric_type") == "loss":
        return []
    chances = {}
    for cell, values in zip(result["cell"].values, result["chance"].values.astype(float), strict=True):
        own = np.nanmean(values) if np.isfinite(values).any() else math.nan
        chances[str(cell)] = float(np.nanmax([own, constant_answers(model, str(cell))[0], -np.inf]))
    return [
        Learning(one, level if math.isfinite(level := chances[one.cell]) else math.nan)
        for one in means_of(model, LEARNED)
        if one.cell in chances
    ]


def nobody_learned(model: Model) -> bool:
    """Whether no learner is shown to be above chance, of a study in which that is known of all."""
    found = learning(model)
    return bool(found) and all(one.at_chance for one in found)


def constant_answers(model: Model, cell: str) -> tuple[float, float]:
    """What one constant answer reaches, by the labels of probe samples: per task, the best for each; and one for all.

    A network that always answers with the last class it saw has half of a task of two classes right. NaN, NaN where no
    labels were recorded.
    """
    labels = model.recorded("probe_samples").get(cell)
    if labels is None or "label" not in labels or "eval_set" not in labels["label"].dims:
        return math.nan, math.nan
    values = labels["label"].transpose("eval_set", ...).values.astype(float)
    of_sets = [one[np.isfinite(one) & (one >= 0)].astype(int) for one in values]
    of_sets = [one for one in of_sets if one.size]
    if not of_sets:
        return math.nan, math.nan
    width = max(int(one.max()) for one in of_sets) + 1
    shares = np.array([np.bincount(one, minlength=width) / one.size for one in of_sets])
    return float(shares.max(axis=1).mean()), float(shares.mean(axis=0).max())
