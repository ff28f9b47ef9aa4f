"""Linear probes of the features of streams: what could be read of them, whatever their own heads were trained to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from waterjar.diagnose.collective.answers import Answers, Labels, numbered
from waterjar.diagnose.collective.best import best_stream
from waterjar.diagnose.collective.inputs import StreamOutputs
from waterjar.diagnose.drift.linear_probe import left_out_right
from waterjar.diagnose.result import Floats, Result

_NO_FEATURES = Result.missing("not_recorded", "features of the streams were not recorded (streams/pooled)")


def ridge_probe(
    features: NDArray[Any], labels: Labels, asked: NDArray[Any], *, ridge: float = 0.01
) -> NDArray[np.int64] | Result:
    """(sample,): answers to `asked` (sample, unit) of ridge regression from features (sample, unit) to one-hot labels.

    With an intercept; the penalty is `ridge` x the mean variance of the features along their principal directions x n,
    as that of `linear_probe_accuracy`. Undefined with fewer than two classes, or features that do not vary.

    >>> ridge_probe(np.array([[1.0], [-1.0]]), np.array([3, 5]), np.array([[0.2], [-0.1]])).tolist()
    [3, 5]
    """
    x, other = np.asarray(features, np.float64), np.asarray(asked, np.float64)
    if not (np.isfinite(x).all() and np.isfinite(other).all()):
        return Result.missing("not_a_number", "features that are not finite")
    names, members = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return Result.missing("undefined", f"{len(names)} class to train a probe on")
    mean, y = x.mean(0), np.eye(len(names))[members]
    x, other = x - mean, other - mean
    total = float(np.einsum("su,su->", x, x))
    if total == 0.0:
        return Result.missing("undefined", "features that do not vary over samples")
    n, units = x.shape
    penalty, target = ridge * total / min(n - 1, units), y - y.mean(0)
    if units > n:
        scores = other @ (x.T @ linalg.solve(x @ x.T + penalty * np.eye(n), target, assume_a="pos"))
    else:
        scores = other @ linalg.solve(x.T @ x + penalty * np.eye(units), x.T @ target, assume_a="pos")
    found: NDArray[np.int64] = names[(scores + y.mean(0)).argmax(1)]
    return found


def probed(outputs: StreamOutputs, *, ridge: float, joined: bool = False) -> tuple[Floats, int | None] | Result:
    """(sample, stream): whether a probe of each stream's features is right, and the best on validation, if it can tell.

    `joined` is one probe of the features of all streams at once, (sample, 1). A stream that cannot be probed is NaN.
    """
    test = outputs.test
    if test.lacking is not None:
        return test.lacking
    if test.pooled is None or test.labels is None:
        return _NO_FEATURES
    trained = outputs.probe
    if trained is not None and (trained.pooled is None or trained.labels is None or not len(trained.labels)):
        trained = None
    streams = [slice(None)] if joined else [slice(i, i + 1) for i in range(len(outputs.names))]
    found: Floats = np.full((len(test.labels), len(streams)), np.nan)
    why: Result | None = None
    for place, which in enumerate(streams):
        right = _right(trained, test, which, ridge)
        if isinstance(right, Result):
            why = right
        else:
            found[:, place] = right
    if np.isnan(found).all():
        return why or _NO_FEATURES
    return found, None if joined else _best(outputs, trained, numbered(found), ridge)


def _best(outputs: StreamOutputs, trained: Answers | None, alive: NDArray[np.bool_], ridge: float) -> int | None:
    """The best probe on validation samples, which did not train it, of streams that it can read on those scored."""
    other = outputs.validation
    if trained is None or other is None or other.pooled is None or other.labels is None or not len(other.labels):
        return None
    if _is_same(trained, other):
        return None
    shares = np.full(len(outputs.names), np.nan)
    for i in np.flatnonzero(alive):
        right = _right(trained, other, slice(i, i + 1), ridge)
        shares[i] = np.nan if isinstance(right, Result) else float(right.mean())
    return None if np.isnan(shares).all() else best_stream(shares, None, outputs.names)


def _is_same(one: Answers, other: Answers) -> bool:
    return one.pooled is not None and other.pooled is not None and np.array_equal(one.pooled, other.pooled)


def _right(trained: Answers | None, asked: Answers, streams: slice, ridge: float) -> NDArray[np.bool_] | Result:
    assert asked.pooled is not None and asked.labels is not None
    features = _units(asked.pooled, streams)
    if not features.shape[1]:
        return Result.missing("not_a_number", "features that are NaN throughout")
    if trained is None:
        return left_out_right(features, asked.labels, ridge=ridge)
    assert trained.pooled is not None and trained.labels is not None
    told = ridge_probe(_units(trained.pooled, streams), trained.labels, features, ridge=ridge)
    return told if isinstance(told, Result) else np.asarray(told == asked.labels)


def _units(pooled: NDArray[Any], streams: slice) -> NDArray[Any]:
    """(sample, unit): features of some streams side by side; units that a stream lacks are NaN throughout, and go."""
    own = pooled[:, streams].reshape(len(pooled), -1)
    return own[:, ~np.isnan(own).all(0)]
