"""Numbers of streams by how others are absent, with intervals over samples, each at its labelled place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from waterjar.diagnose.collective.coalitions import ACCURACY, Game
from waterjar.diagnose.collective.inputs import ABSENCES, Coalitions
from waterjar.diagnose.collective.resampling import mean_bounds
from waterjar.diagnose.result import NOT_A_NUMBER, NOT_RECORDED, UNDEFINED, Codes, Floats, Result

Share = tuple[Floats, Floats | float]
"""(..., sample) of one game, and the standard error (...) that sampled orders bring; NaN where it is not known."""


def by_absence(
    coalitions: Coalitions,
    width: tuple[int, ...],
    kind: str,
    share: Callable[[Game], Share],
    confidence: float,
) -> tuple[Result, Result, Result]:
    """(absence, ...): mean over samples of what `share` gives of each game, and its bounds over samples."""
    shape = (len(ABSENCES), *width)
    value, low, high, error = (np.full(shape, np.nan) for _ in range(4))
    codes: Codes = np.full(shape, NOT_RECORDED, np.uint8)
    if coalitions.missing is not None:
        codes[0] = coalitions.missing.code
    for place, absence in enumerate(ABSENCES):
        game = coalitions.absences.get(absence)
        if game is None or kind not in game.values:
            continue
        own, spread = share(game)
        with np.errstate(invalid="ignore"):
            mean = own.mean(-1)
        value[place] = np.where(np.isinf(mean), np.nan, mean)  # shares of what is infinite are undefined
        low[place], high[place] = bounds(own, spread, confidence, game.pairs)
        error[place] = np.where(np.asarray(spread) > 0, spread, np.nan)
        codes[place] = why_missing(game, kind)
    edges = [Result.of(one, np.where(np.isnan(value), codes, UNDEFINED)) for one in (low, high)]
    return Result.of(value, codes, standard_error=error), edges[0], edges[1]


def bounds(
    values: Floats, spread: Floats | float, confidence: float, pairs: int | None = None
) -> tuple[Floats, Floats]:
    """The t interval over samples of values (..., sample), widened by a standard error of their own.

    That is one over so many `pairs` of orders; None for a standard error that is known.

    >>> low, high = bounds(np.array([[0.0, 1.0, 2.0]]), 0.0, 0.95)
    >>> low.round(3), high.round(3)
    (array([-1.484]), array([3.484]))
    """
    low, high = mean_bounds(np.moveaxis(values, -1, 0), confidence)
    tail = (1 + confidence) / 2
    wide = special.ndtri(tail) if pairs is None or pairs < 2 else special.stdtrit(pairs - 1, tail)
    more = float(wide) * np.asarray(spread)
    half = np.sqrt(((high - low) / 2) ** 2 + more**2)
    middle = (high + low) / 2
    return np.asarray(middle - half), np.asarray(middle + half)


def why_missing(game: Game, kind: str) -> int:
    """Why a number of a game may be missing: infinite or no numbers in it, or coalitions that were not looked at."""
    values = game.values[kind]
    if game.broken:
        return NOT_A_NUMBER
    if np.isinf(values).any():
        return UNDEFINED
    if np.isnan(values).any():
        return NOT_RECORDED if kind == ACCURACY else NOT_A_NUMBER
    return NOT_RECORDED
