"""What metrics of collectives read: outputs of streams, routing, fingerprints, affinities, coalitions, the course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.collective.answers import NOT_NUMBERS, Answers, Array, Labels, by_stream, has_answer
from waterjar.diagnose.result import Floats, Result

ABSENCES = ("removed", "zeroed", "resampled")
"""How a stream is absent: the collective is made without it, its output is zero, or that of another sample."""

NO_COLLECTIVE = Result.missing(
    "not_recorded", "logits of the collective were not recorded, and rule= does not say how streams make one"
)
NO_STREAMS = Result.missing("not_recorded", "logits of the streams were not recorded")


@dataclass(frozen=True, eq=False)
class Control:
    """What a deep ensemble of the baseline reaches with 1, 2, ... members: mean over its subsets and its seeds."""

    nll: Floats
    """(member,): calibrated negative log-likelihood with so many members."""
    missing: Result | None = None
    """Why there is none."""


@dataclass(frozen=True, eq=False)
class StreamOutputs:
    """One snapshot of one repeat: what streams and collective answer on the sets that are scored, and beside them."""

    names: Sequence[str]
    """(stream,)."""
    test: Answers
    validation: Answers | None = None
    """Where the best stream is chosen, and a temperature fitted."""
    probe: Answers | None = None
    """Where linear probes are trained; None: leave one out of the scored samples."""
    rule: str | None = None
    """How the outputs of streams make those of the collective; None where no rule does."""
    parameters: float | None = None
    trainable_parameters: float | None = None
    control: Control | None = None

    @property
    def scored(self) -> Result | None:
        """Why the collective cannot be scored; None where it can."""
        if self.test.lacking is not None:
            return self.test.lacking
        if self.test.collective is None:
            return NO_COLLECTIVE
        return NOT_NUMBERS if np.isnan(self.test.collective_right).any() else None

    @property
    def compared(self) -> Result | None:
        """Why streams cannot be scored; None where at least one can."""
        if self.test.lacking is not None:
            return self.test.lacking
        if self.test.logits is None:
            return NO_STREAMS
        return None if self.alive.any() else NOT_NUMBERS

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """(stream,): streams that answer every scored sample; the others are passed over, and it is said."""
        assert self.test.logits is not None
        return np.asarray(has_answer(self.test.logits).all(0))

    @cached_property
    def likely(self) -> NDArray[np.bool_]:
        """(stream,): streams with probabilities for every scored sample; a logit of plus infinity has none."""
        return ~np.asarray(np.isnan(self.test.log_probabilities).any((0, 2)))

    @cached_property
    def accuracies(self) -> Result:
        """(stream,): accuracy of each stream."""
        return by_stream(self.test.right)

    @cached_property
    def probabilities(self) -> Floats:
        """(sample, stream, class): of the streams that answer."""
        found: Floats = np.exp(self.test.log_probabilities[:, self.alive])
        return found

    @cached_property
    def predictions(self) -> NDArray[np.int64]:
        """(sample, stream): answers of the streams that have one for each."""
        assert self.test.logits is not None
        found: NDArray[np.int64] = self.test.logits[:, self.alive].argmax(-1)
        return found


@dataclass(frozen=True, eq=False)
class Routing:
    """One snapshot of one repeat: where every slot of every stream sends each sample, and with which weight."""

    names: Sequence[str]
    weights: Floats
    """(sample, stream, slot, route)."""
    targets: NDArray[np.int64] | None
    """(sample, stream, slot, route): where a route goes, -1 for nowhere; None where it was not recorded."""
    labels: Labels | None
    """(sample,)."""
    n_targets: int
    """How many places routes may go to."""

    @property
    def missing(self) -> Result | None:
        """Why nothing can be said of it; None where something can."""
        if not self.weights.size:
            return Result.missing("empty_set", "the scored sets have no sample")
        return None if self.alive.any() else NOT_NUMBERS

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """(stream,): streams whose weights are finite, none of them negative; it is said of the others."""
        return np.asarray((np.isfinite(self.weights) & (self.weights >= 0)).all((0, 2, 3)))

    @cached_property
    def shares(self) -> Floats:
        """(sample, stream, slot, route): weights as shares; NaN where they make none."""
        return shares(self.weights)

    @cached_property
    def weighed(self) -> NDArray[np.bool_]:
        """(stream,): those of `alive` that weigh some route for every sample."""
        return ~np.asarray(np.isnan(self.shares).any((0, 2, 3)))


def shares(weights: Floats) -> Floats:
    """Weights as shares of their sum over the last axis; NaN where that is 0 or not finite, or one is negative."""
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where((total > 0) & (weights >= 0).all(-1, keepdims=True), weights / total, np.nan)
    return found


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """One snapshot of one repeat: (stream, component)."""

    names: Sequence[str]
    values: Floats

    @property
    def zero(self) -> NDArray[np.bool_]:
        """(stream,): streams whose fingerprint is 0 throughout, and has no direction."""
        return np.asarray((self.values == 0).all(1))

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(stream,): streams whose fingerprint has a direction; the others are passed over, and it is said."""
        return np.asarray(np.isfinite(self.values).all(1)) & ~self.zero


@dataclass(frozen=True, eq=False)
class Affinities:
    """One snapshot of one repeat: how much each stream takes of each anchor."""

    names: Sequence[str]
    values: Floats
    """(sample, stream, anchor); one sample where no input changes it."""

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(stream,): streams whose affinities are finite; the others are passed over, and it is said."""
        return np.asarray(np.isfinite(self.values).all((0, 2)))


@dataclass(frozen=True, eq=False)
class Coalitions:
    """One snapshot of one repeat: coalitions of streams, by how the others are absent."""

    names: Sequence[str]
    absences: Mapping[str, Any]
    """removed, zeroed, resampled -> a game; only those that there are."""
    gradient_norm: Array | None = None
    """(sample, stream)."""
    missing: Result | None = None
    """Why there is none at all."""


@dataclass(frozen=True, eq=False)
class Course:
    """One repeat: numbers over its snapshots."""

    epochs: Floats
    """(snapshot,): epochs since the start."""
    emergence: Result
    """(snapshot,): emergence ratio."""
    routing_entropy: Result
    """(snapshot,): normalised routing entropy."""
