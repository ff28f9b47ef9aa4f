"""The fair share of each stream in the accuracy of the collective."""

from __future__ import annotations

from waterjar.diagnose.collective.coalitions import ACCURACY
from waterjar.diagnose.collective.contributions import by_absence
from waterjar.diagnose.collective.inputs import Coalitions
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_DIMS = ("absence", "stream")
_BESIDE = {
    "shapley_accuracy_low": Beside(_DIMS, "Shapley value in accuracy: lower bound over samples", "1"),
    "shapley_accuracy_high": Beside(_DIMS, "Shapley value in accuracy: upper bound over samples", "1"),
}


@metric(
    "shapley_accuracy",
    family="collective",
    long_name="Shapley value of each stream in the accuracy; all together are v(all) - v(none)",
    formula="mean over orders of the streams of v(those before and n) - v(those before), per sample",
    units="1",
    citation="Shapley 1953; Castro, Gómez & Tejada 2009 (sampled orders, beyond 8 streams)",
    needs=("streams",),
    dims=_DIMS,
    summary="shapley_accuracy_final",
    version=3,
    beside=_BESIDE,
)
def _measure(coalitions: Coalitions, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    streams = len(coalitions.names)
    found, low, high = by_absence(coalitions, (streams,), ACCURACY, lambda game: game.shapley(ACCURACY), confidence)
    return found, dict(zip(_BESIDE, (low, high), strict=True))
