"""What do two streams add to each other? More than their parts means above 0."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.coalitions import ACCURACY, LIKELIHOOD, Game
from waterjar.diagnose.collective.contributions import Share, by_absence
from waterjar.diagnose.collective.inputs import ABSENCES, Coalitions
from waterjar.diagnose.collective.shapley import interactions_of
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import UNDEFINED, Result

_DIMS = ("absence", "stream", "other_stream")
_BESIDE = {
    "interaction_low": Beside(_DIMS, "interaction of two streams in accuracy: lower bound over samples"),
    "interaction_high": Beside(_DIMS, "interaction of two streams in accuracy: upper bound over samples"),
    "interaction_log_likelihood": Beside(_DIMS, "interaction of two streams in log-likelihood", "nat"),
}


@metric(
    "interaction",
    family="collective",
    long_name="Shapley interaction index of two streams in accuracy: what they add to each other",
    formula="mean over sizes and S without i, j of v(S+i+j) - v(S+i) - v(S+j) + v(S)",
    citation="Grabisch & Roubens 1999, An axiomatic approach to the concept of interaction among players",
    needs=("streams",),
    dims=_DIMS,
    summary="interaction_final",
    version=3,
    beside=_BESIDE,
)
def _measure(coalitions: Coalitions, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    width = (len(coalitions.names),) * 2
    made = {
        kind: by_absence(coalitions, width, kind, lambda game, kind=kind: _pairs(game, kind), confidence)  # type: ignore[misc]
        for kind in (ACCURACY, LIKELIHOOD)
    }
    value, low, high = made[ACCURACY]
    beside = dict(zip(_BESIDE, (low, high, made[LIKELIHOOD][0]), strict=True))
    return _none_with_itself(coalitions, value), {
        name: _none_with_itself(coalitions, one) for name, one in beside.items()
    }


def _pairs(game: Game, kind: str) -> Share:
    """(stream, stream, sample)."""
    return interactions_of(game.present, game.values[kind]), 0.0


def _none_with_itself(coalitions: Coalitions, found: Result) -> Result:
    """A stream has no interaction with itself: that is undefined, whatever was recorded."""
    codes = np.array(found.reason)
    for place, absence in enumerate(ABSENCES):
        if absence in coalitions.absences:
            codes[place][np.diag_indices(codes.shape[-1])] = UNDEFINED
    return Result.of(found.value, codes)
