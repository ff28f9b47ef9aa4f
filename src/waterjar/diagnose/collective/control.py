"""What a deep ensemble of the baseline reaches with any number of its members: the yardstick of other collectives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.collective.answers import NO_LABELS, NOT_NUMBERS, Answers
from waterjar.diagnose.collective.calibration import NO_TEMPERATURE, calibrated_nll
from waterjar.diagnose.collective.inputs import NO_STREAMS, Control
from waterjar.diagnose.collective.reading import RunStreams
from waterjar.diagnose.result import Floats
from waterjar.run.combining import combine, log_softmax

_SUBSETS = 8
"""Ensembles of each size that are looked at, where there are more."""


def control_of(runs: Sequence[RunStreams], settings: Any) -> list[tuple[NDArray[np.int64], Control]]:
    """(labels, curve) of the last snapshot of every repeat of some runs."""
    found = []
    for run in runs:
        for shot in run.last_shots(("logits",)):
            test = shot.answers(run.test)
            validation = None if run.validation is None else shot.answers([run.validation])
            labels = np.empty(0, np.int64) if test.labels is None else test.labels
            found.append((labels, _curve(test, validation, settings.resampling_seed)))
    return found


def _curve(test: Answers, validation: Answers | None, seed: int) -> Control:
    nothing: Floats = np.empty(0)
    if test.logits is None:
        return Control(nothing, NO_STREAMS)
    if test.labels is None or not len(test.labels):
        return Control(nothing, test.lacking or NO_LABELS)
    own = None if validation is None or validation.labels is None else validation.logits
    if any(np.isnan(log_softmax(one)).any() for one in (test.logits, own) if one is not None):
        return Control(nothing, NOT_NUMBERS)
    fitted = None if own is None or validation is None or validation.labels is None else (own, validation.labels)
    curve = ensemble_curve(test.logits, test.labels, fitted, seed=seed)
    return Control(nothing, NO_TEMPERATURE) if np.isnan(curve).any() else Control(curve)


def ensemble_curve(
    logits: NDArray[Any],
    labels: NDArray[np.int64],
    validation: tuple[NDArray[Any], NDArray[np.int64]] | None = None,
    *,
    seed: int = 0,
) -> Floats:
    """(member,): calibrated negative log-likelihood of the mean probability of 1, 2, ... members, mean over subsets.

    Of each size all subsets count, or 8 random ones where there are more.

    Parameters
    ----------
    logits : (sample, member, class), labels : (sample,); of `validation` the same two, for the temperature.
    """
    members = logits.shape[1]
    found = np.empty(members)
    for size in range(1, members + 1):
        losses = []
        for subset in _subsets(members, size, seed):
            fitted = None
            if validation is not None:
                fitted = (combine(validation[0][:, subset], "mean_probability"), validation[1])
            losses.append(calibrated_nll(combine(logits[:, subset], "mean_probability"), labels, fitted, seed=seed)[0])
        found[size - 1] = np.mean(losses)
    return found


def _subsets(members: int, size: int, seed: int) -> Iterator[list[int]]:
    if math.comb(members, size) <= _SUBSETS:
        yield from map(list, itertools.combinations(range(members), size))
        return
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(members, size, 3)))
    for _ in range(_SUBSETS):
        yield sorted(rng.choice(members, size, replace=False).tolist())
