"""What streams and their collective answer on a stack of samples, and the sums that several metrics need of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.diagnose.result import Floats, Result
from waterjar.run.combining import log_softmax

Array = NDArray[Any]
Labels = NDArray[np.int64]

NO_LABELS = Result.missing("not_recorded", "the labels of the samples were not recorded (probe_samples/label)")
NO_SAMPLES = Result.missing("empty_set", "the scored sets have no sample")
NOT_NUMBERS = Result.missing("not_a_number")


def right_answers(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """(sample, ...): 1 where the label has the largest logit, 0 where not, NaN where there is no answer.

    Logits are (sample, ..., class); the first one of equal logits counts.

    >>> right_answers([[2.0, 0.0], [np.nan, 1.0]], [0, 1])
    array([ 1., nan])
    """
    values, wanted = np.asarray(logits), np.asarray(labels)
    told = values.argmax(-1) == wanted.reshape(-1, *(1,) * (values.ndim - 2))
    return np.where(has_answer(values), told.astype(np.float64), np.nan)


def has_answer(logits: ArrayLike) -> NDArray[np.bool_]:
    """(...): whether logits (..., class) answer at all: none of them is NaN, and not all are minus infinity.

    >>> has_answer([[0.0, np.inf], [0.0, np.nan], [-np.inf, -np.inf]])
    array([ True, False, False])
    """
    values = np.asarray(logits)
    return np.asarray(~np.isnan(values).any(-1) & (values.max(-1) > -np.inf))


def label_log_likelihood(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """(sample, ...): log of the probability that softmax gives the label; minus infinity where it has none.

    >>> np.exp(label_log_likelihood([[0.0, 0.0, -np.inf]], [1]))
    array([0.5])
    """
    logs, wanted = log_softmax(logits), np.asarray(labels)
    index = np.broadcast_to(wanted.reshape(-1, *(1,) * (logs.ndim - 1)), (*logs.shape[:-1], 1))
    return np.asarray(np.take_along_axis(logs, index, -1)[..., 0], np.float64)


@dataclass(frozen=True, eq=False)
class Answers:
    """One snapshot of one repeat on the samples of some evaluation sets, stacked."""

    labels: Labels | None
    """(sample,)."""
    logits: Array | None = None
    """(sample, stream, class), among the other streams."""
    isolated: Array | None = None
    """(sample, stream, class), with no other stream around."""
    collective: Array | None = None
    """(sample, class)."""
    pooled: Array | None = None
    """(sample, stream, unit); units that a stream lacks are NaN throughout."""

    @cached_property
    def right(self) -> Floats:
        """(sample, stream): whether each stream is right, among the others."""
        assert self.logits is not None and self.labels is not None
        return right_answers(self.logits, self.labels)

    @cached_property
    def isolated_right(self) -> Floats:
        """(sample, stream): whether each stream is right, with no other around."""
        assert self.isolated is not None and self.labels is not None
        return right_answers(self.isolated, self.labels)

    @cached_property
    def collective_right(self) -> Floats:
        """(sample,): whether the collective is right."""
        assert self.collective is not None and self.labels is not None
        return right_answers(self.collective, self.labels)

    @cached_property
    def log_probabilities(self) -> Floats:
        """(sample, stream, class): of each stream, among the others."""
        assert self.logits is not None
        return log_softmax(self.logits)

    @property
    def lacking(self) -> Result | None:
        """Why nothing can be scored here; None where it can."""
        if self.labels is None:
            return NO_LABELS
        return None if len(self.labels) else NO_SAMPLES


def by_stream(right: Floats) -> Result:
    """(stream,): mean over samples (sample, stream); a stream with a NaN is `not_a_number`.

    >>> by_stream(np.array([[1.0, np.nan], [0.0, 1.0]])).value
    array([0.5, nan])
    """
    return Result.of(right.mean(0), NOT_NUMBERS.code, n=len(right))


def numbered(values: Floats) -> NDArray[np.bool_]:
    """(stream,): which streams have no NaN in (sample, stream, ...)."""
    return ~np.asarray(np.isnan(values).any(axis=tuple(i for i in range(values.ndim) if i != 1)))
