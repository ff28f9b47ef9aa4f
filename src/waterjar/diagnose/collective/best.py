"""Which stream is the best, and how much better the collective is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.collective.answers import Answers, has_answer, label_log_likelihood, numbered, right_answers
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.collective.resampling import percentile_bounds, resampled_accuracies
from waterjar.diagnose.result import Floats, Result

LOW, HIGH = "_low", "_high"
_FEWEST = 2
"""All resamples of one sample are the same."""
_ONE_SAMPLE = Result.missing("undefined", "one sample bounds nothing")


class Versus(NamedTuple):
    """A collective against its best stream, over samples."""

    collective: float
    best: float
    stream: int
    """Which stream is the best."""
    draws: Floats
    """(resample, 2): both in resamples of the samples; none where no interval was asked for."""
    n: int


def best_stream(accuracy: ArrayLike, log_likelihood: ArrayLike | None = None, names: Sequence[str] = ()) -> int:
    """The stream with the highest accuracy (stream,); of equals the likelier one, then the first by name.

    >>> best_stream([0.5, 0.9, 0.9], [-1.0, -0.4, -0.2])
    2
    """
    values = np.asarray(accuracy, np.float64)
    likely = np.zeros(len(values)) if log_likelihood is None else np.asarray(log_likelihood, np.float64)
    likely = np.where(np.isnan(likely), -np.inf, likely)
    told = list(names) or [""] * len(values)
    order = [i for i in range(len(values)) if not np.isnan(values[i])]
    return min(order, key=lambda i: (-values[i], -likely[i], told[i], i))


def emergence_ratio(collective_right: ArrayLike, stream_right: ArrayLike, best: int | None = None) -> Result:
    """rho = accuracy of the collective / accuracy of its best stream; infinite where the best is never right.

    Where both are never right it is undefined. `best` is chosen on other data; left out, it is the best on these.
    Once a stream passes 50 %, rho cannot reach 2: see `error_reduction`.

    Parameters
    ----------
    collective_right : (sample,), stream_right : (sample, stream), whether each answer is right.

    >>> float(emergence_ratio([1, 1, 1, 0], [[1, 0], [0, 1], [1, 0], [0, 0]]))
    1.5
    """
    own, streams = np.asarray(collective_right, np.float64), np.asarray(stream_right, np.float64)
    each = streams.mean(0)
    return _ratio(float(own.mean()), float(each.max() if best is None else each[best]), len(own))


def _ratio(collective: float, best: float, n: int) -> Result:
    if np.isnan(collective) or np.isnan(best):
        return Result.missing("not_a_number", n=n)
    if best == 0.0:
        nothing = Result.missing("undefined", "neither the collective nor any stream is ever right", n=n)
        return nothing if collective == 0.0 else Result(np.inf, n=n)
    return Result(collective / best, n=n)


def error_reduction(collective_right: ArrayLike, stream_right: ArrayLike, best: int | None = None) -> Result:
    """1 - error of the collective / error of its best stream; undefined where the best stream makes none.

    >>> float(error_reduction([1, 1, 1, 0], [[1, 0], [0, 1], [1, 0], [0, 0]]))
    0.5
    """
    own, streams = np.asarray(collective_right, np.float64), np.asarray(stream_right, np.float64)
    each = streams.mean(0)
    return _reduction(float(own.mean()), float(each.max() if best is None else each[best]), len(own))


def _reduction(collective: float, best: float, n: int) -> Result:
    if best == 1.0:
        return Result.missing("undefined", "the best stream makes no error", n=n)
    if np.isnan(collective) or np.isnan(best):
        return Result.missing("not_a_number", n=n)
    return Result(1.0 - (1.0 - collective) / (1.0 - best), n=n)


def chosen_on(validation: Answers | None, alive: NDArray[np.bool_], names: Sequence[str], isolated: bool) -> int | None:
    """The best stream on validation samples; None where there are none with labels."""
    logits = None if validation is None else validation.isolated if isolated else validation.logits
    if validation is None or logits is None or validation.labels is None or not len(validation.labels):
        return None
    able = alive & has_answer(logits).all(0)
    if not able.any():
        return None
    right = np.where(able, right_answers(logits, validation.labels).mean(0), np.nan)
    likely = label_log_likelihood(logits, validation.labels).mean(0)
    return best_stream(right, likely, names)


def best_head(outputs: StreamOutputs) -> int | Result:
    """The stream that the emergence ratio divides by: the best by its own head, among the others."""
    if outputs.compared is not None:
        return outputs.compared
    best = chosen_on(outputs.validation, outputs.alive, outputs.names, isolated=False)
    return best_stream(outputs.accuracies.value, None, outputs.names) if best is None else best


def versus(
    outputs: StreamOutputs,
    right: Floats,
    best: int | None,
    *,
    resamples: int = 0,
    seed: int = 0,
) -> Versus | Result:
    """The collective against streams with these answers (sample, stream); those that are NaN are passed over."""
    if outputs.scored is not None:
        return outputs.scored
    alive = numbered(right)
    if not alive.any():
        return Result.missing("not_a_number", "no stream has numbers")
    own, each = outputs.test.collective_right, np.where(alive, right.mean(0), np.nan)
    stream = best if best is not None else best_stream(each, None, outputs.names)
    draws = np.empty((0, 2))
    if resamples:
        place = None if best is None else int(alive[:best].sum())
        draws = resampled_accuracies(own, right[:, alive], place, resamples=resamples, seed=seed)
    return Versus(float(own.mean()), float(each[stream]), stream, draws, len(own))


def ratio_with_bounds(found: Versus | Result, confidence: float) -> tuple[Result, Result, Result]:
    """The ratio, and its bounds over samples."""
    if isinstance(found, Result):
        return found, found, found
    ratio = _ratio(found.collective, found.best, found.n)
    if ratio.is_missing:
        return ratio, ratio, ratio
    if found.n < _FEWEST:
        return ratio, _ONE_SAMPLE, _ONE_SAMPLE
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = found.draws[:, 0] / found.draws[:, 1]
    low, high = percentile_bounds(drawn, float(ratio), confidence)
    return ratio, _bound(max(low, 0.0)), _bound(high)


def reduction_with_bounds(found: Versus | Result, confidence: float) -> tuple[Result, Result, Result]:
    """The error reduction, and its bounds over samples."""
    if isinstance(found, Result):
        return found, found, found
    reduction = _reduction(found.collective, found.best, found.n)
    if reduction.is_missing:
        return reduction, reduction, reduction
    if found.n < _FEWEST:
        return reduction, _ONE_SAMPLE, _ONE_SAMPLE
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = 1.0 - (1.0 - found.draws[:, 0]) / (1.0 - found.draws[:, 1])
    low, high = percentile_bounds(drawn, float(reduction), confidence)
    return reduction, _bound(low), _bound(high)


def _bound(value: float) -> Result:
    """Undefined where so few samples bound it nowhere."""
    return Result(value) if np.isfinite(value) else Result.missing("undefined", "the samples bound it nowhere")
