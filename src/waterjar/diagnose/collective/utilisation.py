"""How much each anchor is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective._routing_entropy import entropy, over_log
from waterjar.diagnose.collective.inputs import Affinities
from waterjar.diagnose.result import NOT_A_NUMBER, Floats, Result

DEAD = 0.01
"""An anchor below this share of the mean utilisation is dead."""


def anchor_utilisation(affinities: ArrayLike) -> Floats:
    """(stream, anchor): mean over samples of the affinities (sample, stream, anchor).

    >>> anchor_utilisation([[[0.25, 0.5]], [[0.75, 0.5]]])
    array([[0.5, 0.5]])
    """
    return np.asarray(np.asarray(affinities, np.float64).mean(0))


def anchor_entropy(utilisation: ArrayLike) -> Result:
    """Entropy of the normalised utilisation (anchor,) over log of the number of anchors: 1 where all are used alike.

    >>> float(anchor_entropy([0.5, 0.5])), float(anchor_entropy([1.0, 0.0]))
    (1.0, 0.0)
    """
    values = np.asarray(utilisation, np.float64)
    if not np.isfinite(values).all():
        return Result.missing("not_a_number")
    if len(values) < 2:
        return Result.missing("undefined", f"{len(values)} anchor: there is nothing to spread over")
    if (values < 0).any() or not values.sum() > 0:
        return Result.missing("undefined", "utilisation that is negative, or 0 throughout")
    return Result(over_log(float(entropy(values / values.sum())), len(values)))


def dead_anchors(utilisation: ArrayLike) -> Result:
    """How many anchors (anchor,) are used less than 1 % of the mean.

    >>> float(dead_anchors([0.5, 0.5, 0.001]))
    1.0
    """
    values = np.asarray(utilisation, np.float64)
    if not np.isfinite(values).all():
        return Result.missing("not_a_number")
    if not len(values) or (values < 0).any() or not values.sum() > 0:
        return Result.missing("undefined", "utilisation that is negative, or 0 throughout")
    return Result(float((values < DEAD * values.mean()).sum()))


def utilised(affinities: Affinities) -> tuple[Result, Floats | Result]:
    """(stream, anchor) of all streams, and (anchor,) over the streams that have numbers, or why there is none."""
    if not len(affinities.values):
        gone = Result.missing("empty_set", "the scored sets have no sample")
        return Result.of(np.full(affinities.values.shape[1:], np.nan), gone.code), gone
    each = Result.of(anchor_utilisation(affinities.values), NOT_A_NUMBER)
    there = affinities.alive
    return each, each.value[there].mean(0) if there.any() else Result.missing("not_a_number")
