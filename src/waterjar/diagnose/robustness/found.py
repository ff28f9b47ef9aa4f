"""What models answered under shifts and attacks, sample by sample, and what it comes to: accuracies and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.result import Floats
from waterjar.diagnose.robustness.conditions import CLEAN, average_labels, condition_of
from waterjar.diagnose.robustness.kernels import (
    FEWEST_REFERENCES,
    effective_robustness,
    right_when_clean,
    smoothed,
)
from waterjar.errors import WaterjarError
from waterjar.stats.shares import Bounded, mean_share_interval, paired_share_difference, share_interval

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Robustness:
    """Answers of models to the same samples under several conditions.

    The first model is the one that is looked at, the others are its controls. It can be built from anybody's answers;
    `waterjar.probe.robustness` builds it from live models. Intervals are over samples: they speak of these models.

    >>> right = np.array([[[1, 1, 1, 0], [1, 1, 0, 0]], [[1, 1, 1, 1], [1, 0, 0, 0]]], bool)
    >>> found = Robustness(("collective", "ensemble"), ("clean", "seed/blur/3"), right)
    >>> found.accuracy[0].tolist(), found.retained[0][:, 1].round(2).tolist()
    ([[0.75, 0.5], [1.0, 0.25]], [0.67, 0.33])
    """

    models: tuple[str, ...]
    conditions: tuple[str, ...]
    """Labels, see `conditions`; the first is `clean`."""
    correct: Bools
    """(model, condition, sample): whether the answer is right."""
    flags: Mapping[str, Floats] = field(default_factory=dict)
    """Flag -> its number for each model; see `flags`."""
    references: Bools | None = None
    """(reference, clean and shifts, sample): the same of models that say what a clean accuracy predicts."""
    confidence: float = 0.95
    resamples: int = 1000
    """Of effective robustness, whose interval has no closed form."""
    seed: int = 0
    notes: tuple[str, ...] = ()
    """What was passed over, and why."""

    def __post_init__(self) -> None:
        expected = (len(self.models), len(self.conditions))
        if self.correct.dtype != np.bool_ or self.correct.ndim != 3 or self.correct.shape[:2] != expected:
            raise WaterjarError(
                f"correct has shape {self.correct.shape} and type {self.correct.dtype}: expected True and False, "
                f"(model={expected[0]}, condition={expected[1]}, sample)"
            )
        if not self.models or len(set(self.models)) < len(self.models) or len(set(self.conditions)) < expected[1]:
            raise WaterjarError(f"models {self.models}, conditions {self.conditions}: expected some, each once")
        if self.conditions[:1] != (CLEAN,):
            raise WaterjarError(f"conditions {self.conditions}: expected '{CLEAN}' as the first one")
        for label in self.conditions:
            condition_of(label)
        asked = (len(self.natural), self.correct.shape[2])
        if self.references is not None and self.references.shape[1:] != asked:
            raise WaterjarError(
                f"references have shape {self.references.shape}: expected (reference, clean and shifts={asked[0]}, "
                f"sample={asked[1]})"
            )

    @property
    def others(self) -> tuple[str, ...]:
        """The controls."""
        return self.models[1:]

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.correct.shape[2])

    @cached_property
    def natural(self) -> list[int]:
        """Places of the conditions that are no attacks: clean, and shifts."""
        return [place for place, label in enumerate(self.conditions) if condition_of(label).kind != "attack"]

    @cached_property
    def kept(self) -> Bools:
        """(sample,): those that all models had right when clean."""
        return right_when_clean(self.correct[:, 0])

    @cached_property
    def averages(self) -> dict[str, list[int]]:
        """`<ladder>/<severity>`, `<ladder>/all` -> places of the conditions that this average is over."""
        return {
            name: [self.conditions.index(label) for label in labels]
            for name, labels in average_labels(self.conditions).items()
        }

    @cached_property
    def accuracy(self) -> Bounded:
        """(model, condition), with Wilson's interval."""
        return share_interval(self.correct.sum(2), self.n, confidence=self.confidence)

    @cached_property
    def retained(self) -> Bounded:
        """(model, condition): the share still right of the samples that ALL models had right when clean."""
        own = self.correct[:, :, self.kept]
        return share_interval(own.sum(2), own.shape[2], confidence=self.confidence)

    @cached_property
    def difference(self) -> Bounded:
        """(other model, condition): accuracy of the first model less that of the other, on the same samples."""
        return self._difference(self._gaps(self.correct))

    @cached_property
    def retained_difference(self) -> Bounded:
        """(other model, condition): the same of what is retained, which is at equal clean accuracy."""
        return self._difference(self._gaps(self.correct[:, :, self.kept]))

    @cached_property
    def average_accuracy(self) -> Bounded:
        """(model, average): accuracy averaged over conditions."""
        return mean_share_interval(self._over(self.correct), confidence=self.confidence)

    @cached_property
    def average_difference(self) -> Bounded:
        """(other model, average): the difference averaged over conditions."""
        return self._difference(self._gaps(self._over(self.correct)))

    @cached_property
    def average_retained_difference(self) -> Bounded:
        """(other model, average): the difference of what is retained, averaged over conditions."""
        return self._difference(self._gaps(self._over(self.correct[:, :, self.kept])))

    @cached_property
    def effective(self) -> Bounded:
        """(model, condition): effective robustness against the references, with a bootstrap interval over samples.

        NaN without three references, and of attacks, which no reference is put under.
        """
        found = []
        for part in self._effective([[place] for place in range(len(self.natural))]):
            whole = np.full((len(self.models), len(self.conditions)), np.nan)
            whole[:, self.natural] = part
            found.append(whole)
        return found[0], found[1], found[2]

    @cached_property
    def average_effective(self) -> Bounded:
        """(model, average): the same of the accuracy averaged over conditions."""
        return self._effective([[self.natural.index(i) for i in places] for places in self.averages.values()])

    def _difference(self, gaps: Floats) -> Bounded:
        return paired_share_difference(gaps, confidence=self.confidence)

    def _gaps(self, table: NDArray[np.generic]) -> Floats:
        """First model less each other, (other, ..., sample)."""
        numbers = table.astype(np.float64)
        return numbers[:1] - numbers[1:]

    def _over(self, correct: Bools) -> Floats:
        """(model, average, sample): the mean over the conditions of each average."""
        parts = [correct[:, places].mean(1) for places in self.averages.values()]
        return np.stack(parts, 1) if parts else np.empty((len(correct), 0, correct.shape[2]))

    @cached_property
    def _resampled(self) -> Floats:
        """(1 + resample, model and reference, clean and shifts): accuracies, those of all samples first."""
        others = np.empty((0, len(self.natural), self.n)) if self.references is None else self.references
        every = np.concatenate([self.correct[:, self.natural], others]).astype(np.float32)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1,)))
        counts = rng.multinomial(self.n, np.full(self.n, 1 / self.n), size=self.resamples).astype(np.float32)
        rows = np.concatenate([np.ones((1, self.n), np.float32), counts])
        sums = rows @ every.reshape(-1, self.n).T
        return smoothed(sums.reshape(len(rows), *every.shape[:2]), self.n)

    def _effective(self, groups: list[list[int]]) -> Bounded:
        """(model, group): of the mean over the conditions of each group."""
        split = len(self.models)
        nothing = np.full((split, len(groups)), np.nan)
        if self.references is None or len(self.references) < FEWEST_REFERENCES or not groups:
            return nothing, nothing.copy(), nothing.copy()
        clean = self._resampled[:, :, :1]
        shifted = np.stack([self._resampled[:, :, places].mean(2) for places in groups], 2)
        found = effective_robustness(
            clean[:, :split],
            shifted[:, :split],
            np.moveaxis(clean[:, None, split:], 2, 3),
            np.moveaxis(shifted[:, None, split:], 2, 3),
        )
        if np.isnan(found[0]).all():
            return nothing, nothing.copy(), nothing.copy()
        tail = (1 - self.confidence) / 2
        low, high = np.nanquantile(found[1:], [tail, 1 - tail], axis=0)  # resamples without a line are left out
        return found[0], low, high
