"""What is lost without one stream?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.coalitions import ACCURACY, Game
from waterjar.diagnose.collective.contributions import Share, by_absence
from waterjar.diagnose.collective.inputs import Coalitions
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Floats, Result

_DIMS = ("absence", "stream")
_BESIDE = {
    "ablation_low": Beside(_DIMS, "accuracy lost without a stream: lower bound over samples"),
    "ablation_high": Beside(_DIMS, "accuracy lost without a stream: upper bound over samples"),
}


@metric(
    "ablation",
    family="collective",
    long_name="ablation: accuracy that the collective loses without each stream",
    formula="acc(all) - acc(all but n), the absent one removed, zeroed or resampled",
    range=(-1, 1),
    citation="the seed document, Metrics and Evaluation 2.4; Meyes et al. 2019, Ablation studies in neural networks",
    needs=("streams",),
    dims=_DIMS,
    summary="ablation_final",
    version=3,
    beside=_BESIDE,
)
def _measure(coalitions: Coalitions, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    streams = len(coalitions.names)
    found, low, high = by_absence(coalitions, (streams,), ACCURACY, _lost, confidence)
    return found, dict(zip(_BESIDE, (low, high), strict=True))


def _lost(game: Game) -> Share:
    """(stream, sample): right with all, less right without one."""
    streams = game.present.shape[1]
    found: Floats = np.full((streams, game.values[ACCURACY].shape[1]), np.nan)
    whole = game.row(np.ones(streams, np.bool_), ACCURACY)
    for stream in range(streams):
        without = game.row(np.arange(streams) != stream, ACCURACY)
        if whole is not None and without is not None:
            found[stream] = whole - without
    return found, 0.0
