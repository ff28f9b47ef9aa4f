"""Guessing: what accuracy it has, and whether a side is above it. Below it there is nothing to judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from waterjar.diagnose.measuring import Unit
from waterjar.run.accuracies import TOLERANCE

LUCK = 0.99
"""How often guessing, in all seeds, stays within the limits that accuracy has to exceed, with the size of the set."""


@dataclass(frozen=True)
class Guessing:
    """What is known of guessing on the evaluation sets of a cell."""

    chance: float = math.nan
    """Of all classes that compete; NaN where it is not known."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Role -> how many classes its set has; only those that are known."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Role -> how many images its set has; only those that were recorded."""

    def level(self, role: str) -> float:
        """The accuracy of who guesses among the classes of a set: max(1 / K, 1 / classes present); NaN if unknown."""
        known = [self.chance, *(1 / self.classes[key] for key in [role] if self.classes.get(key))]
        return float(np.fmax.reduce(known))


def guessing_of(unit: Unit, dataset: xr.Dataset, eval_sets: Mapping[str, str], settings: Any, task: int) -> Guessing:
    """What the runs of a cell tell of guessing; `eval_sets` has the set of each role, `task` was trained last."""
    classes = {role: _classes_present(dataset, label) for role, label in eval_sets.items()}
    told = [run.attributes.get("eval_sizes") or {} for run in unit.runs]
    sizes = {
        role: min(int(one[label]) for one in told)
        for role, label in eval_sets.items()
        if all(one.get(label) for one in told)
    }
    return Guessing(_chance(unit, settings, task), {role: n for role, n in classes.items() if n}, sizes)


def _chance(unit: Unit, settings: Any, task: int) -> float:
    """Chance on a task: as set, else as the runs tell it of all classes competing; NaN where it is not known."""
    chance = settings.chance
    if chance is None and not settings.variable.startswith("task_"):  # of those, how many compete is not recorded
        chance = unit.chance
    return math.nan if chance is None else float(chance[task] if isinstance(chance, tuple) else chance)


def _classes_present(dataset: xr.Dataset, label: str) -> int:
    """How many classes an evaluation set has, by the accuracies per class that were recorded; 0 where none were."""
    for name in ("class_accuracy", "task_class_accuracy"):
        if name in dataset and label in dataset["eval_set"].values:
            place = int(np.flatnonzero(dataset["eval_set"].values == label)[0])
            there = np.isfinite(dataset[name].isel(eval_set=place).transpose("class", ...).values)
            return int(there.reshape(len(there), -1).any(1).sum())
    return 0


def luck_limits(level: float, size: int, seeds: int = 1) -> tuple[float, float]:
    """The accuracies that guessing exceeds in at most 1 % of studies: of the mean over seeds, and of the best seed.

    Who guesses does so anew in every seed, so that the hits of all seeds together are one binomial, and each seed's is
    another try, which stays below with a probability of p^(1 / seeds) (Sidak 1967). Of several seeds either limit is
    exceeded in at most 0.5 % of studies; of one seed the two are the same, at 1 %.

    >>> luck_limits(0.1, 100), luck_limits(0.1, 100, seeds=20)
    ((0.18, 0.18), (0.1175, 0.22))
    """
    from scipy.stats import binom  # noqa: PLC0415 - scipy.stats takes its time

    below = LUCK if seeds == 1 else (1 + LUCK) / 2
    mean = float(binom.ppf(below, size * seeds, level)) / (size * seeds)
    return mean, float(binom.ppf(below ** (1 / seeds), size, level)) / size


def too_few_images(level: float, size: int | None, seeds: int) -> bool:
    """Whether not even an accuracy of 1 in every seed could be told from guessing with a set of this size.

    >>> too_few_images(0.5, 5, 1), too_few_images(0.5, 5, 3)
    (True, False)
    """
    return bool(size and seeds and min(luck_limits(level, size, seeds)) >= 1)


def above_guessing(accuracies: ArrayLike, level: float, size: int | None, confidence: float) -> bool | None:
    """Whether accuracies, one per seed, are above the level of guessing; None where that cannot be told.

    As `shown_above` has it; but that is not to say that nothing was learned where `too_few_images` could show it, nor,
    where the size of the set is not known, where every seed is above the level and so few do not show it of their mean.

    >>> above_guessing([0.11, 0.09, 0.1], 0.1, None, 0.95), above_guessing([0.3, 0.31, 0.32], 0.1, None, 0.95)
    (False, True)
    >>> print(above_guessing([0.45, 0.95], 0.1, None, 0.95))
    None
    """
    shown, values = shown_above(accuracies, level, size, confidence), np.asarray(accuracies, np.float64)
    known = values[np.isfinite(values)]
    if shown is not False:
        return shown
    open_yet = too_few_images(level, size, known.size) if size else bool((known > level + TOLERANCE).all())
    return None if open_yet else False


def shown_above(accuracies: ArrayLike, level: float, size: int | None, confidence: float) -> bool | None:
    """Whether accuracies, one per seed, are shown to be above a level; None of one seed alone, or of an unknown level.

    With the size of the set: whether their mean, or any seed, exceeds what luck allows it (`luck_limits`). Without:
    whether the mean does, by a one-sided t interval; equal seeds show it when there are as many as
    `equal_seeds_needed` says.
    """
    values = np.asarray(accuracies, np.float64)
    known = values[np.isfinite(values)]
    if not known.size or math.isnan(level):
        return None
    if size:
        mean, best = luck_limits(level, size, known.size)
        return bool(known.mean() > mean + TOLERANCE or known.max() > best + TOLERANCE)
    if known.size == 1:
        return None
    from scipy.stats import t  # noqa: PLC0415

    if np.ptp(known) <= TOLERANCE:
        return bool(known.mean() > level + TOLERANCE) and known.size >= equal_seeds_needed(confidence)
    spread = float(known.std(ddof=1)) / math.sqrt(known.size)
    return bool(known.mean() - float(t.ppf(confidence, known.size - 1)) * spread > level + TOLERANCE)


def shown_within(accuracies: ArrayLike, level: float, size: int | None, confidence: float, margin: float) -> bool:
    """Whether accuracies, one per seed, are shown to be at most a margin above a level.

    With the size of the set: by the exact upper bound of their mean (Clopper & Pearson 1934), as if one seed had it:
    seeds see the same images, so that more of them do not make up for few. Without: by a one-sided t interval; of equal
    seeds, whose spread is not known, only those that are not above the level at all.

    >>> shown_within([0.0], 0.02, 100, 0.95, 0.05), shown_within([0.0], 0.02, 8, 0.95, 0.05)
    (True, False)
    """
    values = np.asarray(accuracies, np.float64)
    known = values[np.isfinite(values)]
    if not known.size or math.isnan(level):
        return False
    mean = float(known.mean())
    if size:
        from scipy.stats import beta  # noqa: PLC0415

        hits = mean * size
        upper = 1.0 if hits >= size else float(beta.ppf(confidence, hits + 1, size - hits))
        return upper <= level + margin + TOLERANCE
    if known.size == 1 or np.ptp(known) <= TOLERANCE:
        return bool(mean <= level + TOLERANCE)
    from scipy.stats import t  # noqa: PLC0415

    spread = float(known.std(ddof=1)) / math.sqrt(known.size)
    return bool(mean + float(t.ppf(confidence, known.size - 1)) * spread <= level + margin + TOLERANCE)


def equal_seeds_needed(confidence: float) -> int:
    """How many seeds with one and the same difference in accuracy count as clear of 0.

    Equal seeds give an interval without width, because no spread was seen, and not because there is none: seeds that
    are copies of each other do that, and coarse test sets. What is left is that all have one sign, so a sign test
    decides: the fewest n with 2 (1/2)^n <= 1 - confidence.

    >>> equal_seeds_needed(0.95), equal_seeds_needed(0.5)
    (6, 2)
    """
    n = 2
    while 2.0 ** (1 - n) > 1 - confidence:
        n += 1
    return n
