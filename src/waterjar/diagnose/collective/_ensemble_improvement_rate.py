"""How much better is the collective than its average stream?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def ensemble_improvement_rate(collective_right: ArrayLike, stream_right: ArrayLike) -> Result:
    """EIR = (mean error of streams - error of the collective) / mean error of streams; undefined where that is 0.

    Parameters
    ----------
    collective_right : (sample,), stream_right : (sample, stream), whether each answer is right.

    >>> float(ensemble_improvement_rate([1, 1, 1, 0], [[1, 0], [0, 1], [1, 0], [0, 1]]))
    0.5
    """
    own, streams = np.asarray(collective_right, np.float64), np.asarray(stream_right, np.float64)
    error, average = 1.0 - float(own.mean()), 1.0 - float(streams.mean())
    if average == 0.0:
        return Result.missing("undefined", "no stream makes an error", n=len(own))
    return Result((average - error) / average, n=len(own))


@metric(
    "ensemble_improvement_rate",
    family="collective",
    long_name="ensemble improvement rate: error taken away, relative to the average stream",
    formula="EIR = (mean over streams of err - err(collective)) / mean over streams of err",
    direction="higher",
    range=(-np.inf, 1),
    citation="Theisen et al. 2023, When are ensembles really effective?",
    needs=("streams/logits", "streams/collective_logits", "probe_samples/label"),
    summary="ensemble_improvement_rate_final",
    symbol="EIR",
    made_of=("collective_accuracy",),
)
def _measure(outputs: StreamOutputs) -> Result:
    gone = outputs.compared or outputs.scored
    if gone is not None:
        return gone
    return ensemble_improvement_rate(outputs.test.collective_right, outputs.test.right[:, outputs.alive])
