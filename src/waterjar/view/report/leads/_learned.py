"""Who learned anything at all: accuracy beside chance, and beside what one constant answer would reach."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.over_seeds import over_seeds
from waterjar.view.report.leads._claims import Mean, means_of
from waterjar.view.report.model import Model

LEARNED, ENDING = "learning_accuracy", "average_accuracy"
HARDLY = 0.1
"""Above chance by less than this share of what there is above it: hardly learned."""


class Beside(NamedTuple):
    """An accuracy over seeds, and what guessing, or one constant answer, reaches there; NaN where nobody knows."""

    accuracy: Mean
    chance: float

    @property
    def reach(self) -> float:
        """How much of what there is above chance its mean reaches."""
        return _reach(self.accuracy.mean, self.chance)

    @property
    def shown(self) -> bool:
        """Whether several seeds show that it is above chance."""
        return self.accuracy.low > self.chance + 1e-9


class Learning(NamedTuple):
    """How well a learner knew its tasks when it had just trained them, and what other evaluations show of it."""

    accuracy: Mean
    chance: float
    """What guessing, or one constant answer, reaches; NaN where nobody knows."""
    others: tuple[Beside, ...] = ()
    """All tasks at the end, and every evaluation since training began: what is trained may be told wrongly, or end
    before it is known."""

    @property
    def _low(self) -> bool:
        """Near chance, and not shown to be above it; three seeds at 90 % may have an interval that reaches to 50 %."""
        return _reach(self.accuracy.mean, self.chance) < HARDLY and self.accuracy.above <= self.chance + 1e-9

    @property
    def at_chance(self) -> bool:
        """Near it in every evaluation."""
        return self._low and not any(one.shown or one.reach >= HARDLY for one in self.others)

    @property
    def open(self) -> bool:
        """Near it after its own training, and elsewhere above it, which its seeds are too few to show."""
        return self._low and not self.at_chance and not any(one.shown for one in self.others)

    @property
    def hardly(self) -> bool:
        """Above it, but surely by little."""
        return not self._low and _reach(self.accuracy.below, self.chance) < HARDLY


def _reach(accuracy: float, chance: float) -> float:
    """How much of what there is above chance is reached."""
    return (accuracy - chance) / (1 - chance) if chance < 1 else math.nan


def learning(model: Model) -> list[Learning]:
    """Every learner whose accuracy at the end of its own training was measured."""
    result = model.diagnosis.results.get("continual")
    if result is None or model.diagnosis.settings("continual").get("metric_type") == "loss":
        return []
    found = []
    by_cell = dict(zip(map(str, result["cell"].values), result["chance"].values.astype(float), strict=True))
    ends = {one.cell: one for one in means_of(model, ENDING)}
    for one in means_of(model, LEARNED):
        if one.cell not in by_cell:
            continue
        values = by_cell[one.cell]
        guess = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
        known = constant_answers(model, one.cell)
        own, together = (float(np.fmax(guess, level)) for level in known)
        end = [Beside(ends[one.cell], together)] if one.cell in ends else []
        found.append(Learning(one, own, (*end, *_evaluations(model, one.cell, guess, together))))
    return found


def _evaluations(model: Model, cell: str, guess: float, together: float) -> list[Beside]:
    """Every evaluation since training began: of each set, and of all at once. Intervals are corrected for how many."""
    steps = model.recorded("performance").get(cell)
    if steps is None or "accuracy" not in steps or set(steps["accuracy"].dims) != {"step", "eval_set", "repeat"}:
        return []
    shares, names = _shares(model, cell), [str(name) for name in steps["eval_set"].values]
    levels = [float(np.fmax(guess, shares[name].max() if name in shares else math.nan)) for name in names]
    trained = steps.isel(step=steps["total_epoch"].values.astype(float) > 0)["accuracy"]
    values = trained.transpose("step", "eval_set", "repeat").values.astype(float)
    every = np.concatenate([values, values.mean(axis=1, keepdims=True)], axis=1)
    alpha = (1 - model.diagnosis.confidence("continual")) / max(1, every.shape[0] * every.shape[1])
    found = []
    for row in every:
        for seeds, level in zip(row, [*levels, together], strict=True):
            over = over_seeds(seeds, None, 1 - alpha)
            if over.n:
                found.append(Beside(Mean(cell, over.mean, over.low, over.high, over.n), level))
    return found


def nobody_learned(model: Model) -> bool:
    """Whether no learner is shown to be above chance, of a study in which that is known of all."""
    found = learning(model)
    return bool(found) and all(one.at_chance for one in found)


def constant_answers(model: Model, cell: str) -> tuple[float, float]:
    """What one constant answer reaches, by the labels of probe samples: per task, the best for each; and one for all.

    A network that always answers with the last class it saw has half of a task of two classes right. NaN, NaN where no
    labels were recorded.
    """
    shares = np.array(list(_shares(model, cell).values()))
    return (float(shares.max(axis=1).mean()), float(shares.mean(axis=0).max())) if len(shares) else (math.nan, math.nan)


def _shares(model: Model, cell: str) -> dict[str, NDArray[np.float64]]:
    """Evaluation set -> the share of every class among its probe samples, of sets with labels."""
    labels = model.recorded("probe_samples").get(cell)
    if labels is None or "label" not in labels or "eval_set" not in labels["label"].dims:
        return {}
    values = labels["label"].transpose("eval_set", ...).values.astype(float)
    named = zip(map(str, labels["eval_set"].values), values, strict=True)
    of_sets = {name: one[np.isfinite(one) & (one >= 0)].astype(int) for name, one in named}
    of_sets = {name: one for name, one in of_sets.items() if one.size}
    width = max((int(one.max()) for one in of_sets.values()), default=0) + 1
    return {name: np.bincount(one, minlength=width) / one.size for name, one in of_sets.items()}
