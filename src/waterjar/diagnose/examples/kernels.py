"""From the answers to single examples, evaluation by evaluation, to what happened to each: numpy in, numpy out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.result import NEVER_REACHED, NOT_RECORDED, Result
from waterjar.errors import WaterjarError
from waterjar.run.schema import ABSENT


def answers_of(correct: ArrayLike) -> NDArray[np.uint8]:
    """(evaluation, example) as bytes, checked: 1, 0, and 255 (or NaN) where nobody looked."""
    given = np.asarray(correct)
    if given.dtype.kind == "f":
        given = np.where(np.isnan(given), ABSENT, given)
    if given.ndim != 2 or not np.isin(given, (0, 1, ABSENT)).all():
        raise WaterjarError(
            f"correct {given.shape}: expected 1 or 0 (evaluation, example), and 255 or NaN where nobody looked"
        )
    return given.astype(np.uint8)


def last_looked(answers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(evaluation, example): each answer, or the last one before it where nobody looked; ABSENT before the first."""
    looked = answers != ABSENT
    rows = np.where(looked, np.arange(len(answers))[:, None], -1)
    before = np.maximum.accumulate(rows, axis=0)
    return np.where(before < 0, np.uint8(ABSENT), np.take_along_axis(answers, np.maximum(before, 0), 0))


def count_forgetting(answers: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(example,): how often an example goes from right to wrong between two looks that follow each other."""
    known = last_looked(answers)
    found: NDArray[np.int64] = ((known[:-1] == 1) & (known[1:] == 0)).sum(0)
    return found


def forgetting_events(correct: ArrayLike) -> Result:
    """(example,): how often each example was forgotten: right at one evaluation and wrong at its next one.

    Toneva et al. 2019, "An empirical study of example forgetting during deep neural network learning", def. 1. An
    example that was never right cannot be forgotten: it is missing (`never_reached`), and not 0.

    >>> forgetting_events([[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 1]]).value
    array([ 2., nan,  0.])
    """
    answers = answers_of(correct)
    ever, looked = (answers == 1).any(0), (answers != ABSENT).any(0)
    return Result.of(np.where(ever, count_forgetting(answers), np.nan), np.where(looked, NEVER_REACHED, NOT_RECORDED))


def first_learned(correct: ArrayLike, epochs: ArrayLike, *, learned: str = "first") -> Result:
    """(example,): the epoch at which each example was learned; `never_reached` and censored where it was not.

    `first`: the first evaluation at which it is right. `for_good`: the first one from which on it is never wrong again
    (the last epoch of the learning event, so to speak: what is right once may be luck). `epochs` are (evaluation,), or
    (evaluation, example).

    >>> first_learned([[1, 0], [0, 0], [1, 0]], [1, 2, 3]).value, first_learned([[1, 0], [0, 0], [1, 0]], [1, 2, 3],
    ...     learned="for_good").value
    (array([ 1., nan]), array([ 3., nan]))
    """
    answers, at = answers_of(correct), np.asarray(epochs, np.float64)
    at = np.broadcast_to(at if at.ndim == 2 else at[:, None], answers.shape)
    good, looked = answers == 1, (answers != ABSENT).any(0)
    if learned == "for_good":  # right, and wrong at none of the evaluations behind it
        good = good & ~np.logical_or.accumulate((answers == 0)[::-1], axis=0)[::-1]
    row = good.argmax(0)
    epoch = np.take_along_axis(at, row[None], 0)[0]
    never = ~good.any(0)
    codes = np.where(looked, NEVER_REACHED, NOT_RECORDED)
    return Result.of(np.where(never, np.nan, epoch), codes, censored=never & looked)


def area_under_margin(margin: ArrayLike) -> Result:
    """(example,): the mean over evaluations of the margin: logit of the label less the largest other.

    Pleiss et al. 2020, "Identifying mislabeled data using the area under the margin ranking". `margin` is (evaluation,
    example); NaN where nobody looked. An infinite one has no mean: `undefined`.

    >>> area_under_margin([[1.0, -2.0], [3.0, float("nan")]]).value
    array([ 2., -2.])
    """
    values = np.asarray(margin, np.float64)
    if values.ndim != 2:
        raise WaterjarError(f"margin has shape {values.shape}: expected (evaluation, example)")
    looked = ~np.isnan(values)
    count = looked.sum(0)
    infinite = np.isinf(values).any(0)
    sums = np.where(looked & ~infinite, values, 0.0).sum(0)
    mean = np.where(infinite | (count == 0), np.nan, sums / np.maximum(count, 1))
    return Result.of(mean, np.where(count == 0, NOT_RECORDED, 0), n=count)  # else undefined
