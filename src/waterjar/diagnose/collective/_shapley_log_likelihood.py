"""The fair share of each stream in the log-likelihood of the collective."""

from __future__ import annotations

from waterjar.diagnose.collective.coalitions import LIKELIHOOD
from waterjar.diagnose.collective.contributions import by_absence
from waterjar.diagnose.collective.inputs import Coalitions
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_DIMS = ("absence", "stream")
_BESIDE = {
    "shapley_log_likelihood_low": Beside(_DIMS, "Shapley value in log-likelihood: lower bound over samples", "nat"),
    "shapley_log_likelihood_high": Beside(_DIMS, "Shapley value in log-likelihood: upper bound over samples", "nat"),
}


@metric(
    "shapley_log_likelihood",
    family="collective",
    long_name="Shapley value of each stream in the log-likelihood of the label; all together are v(all) - v(none)",
    formula="mean over orders of the streams of v(those before and n) - v(those before), per sample",
    units="nat",
    citation="Shapley 1953; Castro, Gómez & Tejada 2009 (sampled orders, beyond 8 streams)",
    needs=("streams",),
    dims=_DIMS,
    summary="shapley_log_likelihood_final",
    version=2,
    beside=_BESIDE,
)
def _measure(coalitions: Coalitions, *, confidence: float) -> tuple[Result, dict[str, Result]]:
    streams = len(coalitions.names)
    found, low, high = by_absence(coalitions, (streams,), LIKELIHOOD, lambda game: game.shapley(LIKELIHOOD), confidence)
    return found, dict(zip(_BESIDE, (low, high), strict=True))
