"""Is the collective better than its best stream?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.best import Versus, chosen_on, ratio_with_bounds, versus
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.resampling import stream_bounds
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NOT_A_NUMBER, Result

_BESIDE = {
    "emergence_ratio_low": Beside((), "emergence ratio: lower bound over samples, of this network"),
    "emergence_ratio_high": Beside((), "emergence ratio: upper bound over samples, of this network"),
    "best_individual": Beside((), "accuracy of the best stream, on the scored sets"),
    "best_individual_low": Beside((), "accuracy of the best stream: lower bound over samples"),
    "best_individual_high": Beside((), "accuracy of the best stream: upper bound over samples"),
    "best_stream": Beside((), "number of the best stream, chosen on validation data where there is some"),
    "best_at_chance": Beside((), "1 where the best stream is not surely above one constant answer: rho says nothing"),
    "individual_accuracy": Beside(("stream",), "accuracy of each stream, among the others"),
    "individual_accuracy_low": Beside(("stream",), "accuracy of each stream: lower bound over samples"),
    "individual_accuracy_high": Beside(("stream",), "accuracy of each stream: upper bound over samples"),
    "head_at_chance": Beside(("stream",), "1 where the stream is not surely above one constant answer"),
    "chance": Beside((), "accuracy of the best constant answer: share of the most frequent class"),
}


@metric(
    "emergence_ratio",
    family="collective",
    long_name="emergence ratio: accuracy of the collective over that of its best stream",
    formula="rho = acc(collective) / max over streams of acc(stream), chosen on validation data",
    direction="higher",
    range=(0, np.inf),
    citation="the seed document, Metrics and Evaluation 1.1; Theisen et al. 2023, When are ensembles really effective?",
    needs=("streams/logits", "streams/collective_logits", "probe_samples/label"),
    summary="emergence_ratio_final",
    version=2,
    symbol="rho",
    matters=1,
    beside=_BESIDE,
    made_of=("collective_accuracy", "best_individual"),
)
def _measure(
    outputs: StreamOutputs, *, resamples: int, confidence: float, resampling_seed: int
) -> tuple[Result, dict[str, Result]]:
    found = _compared(outputs, resamples=resamples, resampling_seed=resampling_seed)
    ratio, low, high = ratio_with_bounds(found, confidence)
    about = _streams(outputs, confidence)
    beside = {"emergence_ratio_low": low, "emergence_ratio_high": high, **about}
    if isinstance(found, Result):
        return ratio, {**beside, **dict.fromkeys([name for name in _BESIDE if name.startswith("best_")], found)}
    flag = float(about["head_at_chance"].value[found.stream])
    beside |= {
        "best_individual": Result(found.best, n=found.n),
        **{
            f"best_individual_{end}": Result(float(about[f"individual_accuracy_{end}"].value[found.stream]))
            for end in ("low", "high")
        },
        "best_stream": Result(float(found.stream)),
        "best_at_chance": Result(flag),
    }
    return ratio, beside


def _compared(outputs: StreamOutputs, *, resamples: int, resampling_seed: int) -> Versus | Result:
    if outputs.compared is not None:
        return outputs.compared
    best = chosen_on(outputs.validation, outputs.alive, outputs.names, isolated=False)
    return versus(outputs, outputs.test.right, best, resamples=resamples, seed=resampling_seed)


def point(outputs: StreamOutputs) -> Result:
    """The ratio alone, without an interval."""
    found = _compared(outputs, resamples=0, resampling_seed=0)
    return found if isinstance(found, Result) else _plain(found)


def _plain(found: Versus) -> Result:
    return ratio_with_bounds(found._replace(draws=np.full((1, 2), np.nan)), 0.5)[0]


def _streams(outputs: StreamOutputs, confidence: float) -> dict[str, Result]:
    """Accuracy of each stream, and whether it is above chance."""
    if outputs.compared is not None:
        gone = Result.of(np.full(len(outputs.names), np.nan), outputs.compared.code)
        names = ("individual_accuracy", "individual_accuracy_low", "individual_accuracy_high", "head_at_chance")
        return {**dict.fromkeys(names, gone), "chance": outputs.compared}
    assert outputs.test.labels is not None
    n, each = len(outputs.test.labels), outputs.accuracies
    chance = float(np.bincount(outputs.test.labels).max() / n)
    low, high = stream_bounds(outputs.test.right, confidence)
    flags = np.where(np.isnan(each.value), np.nan, low.value <= chance)
    return {
        "individual_accuracy": each,
        "individual_accuracy_low": low,
        "individual_accuracy_high": high,
        "head_at_chance": Result.of(flags, NOT_A_NUMBER),
        "chance": Result(chance, n=n),
    }
