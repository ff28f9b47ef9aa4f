"""When an option is asked, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.binary.optimisers import Optimiser
from waterjar.lab.binary.weights import Weights
from waterjar.lab.networks import Network

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Context:
    """What an option may look at and change: the repeats that it is told of, and nothing else."""

    network: Network
    """Its structure and its rule for first weights; its own numbers mean nothing."""
    weights: Weights
    optimiser: Optimiser
    seeds: tuple[int, ...]
    """One per repeat."""
    role: str
    """Whose weights they are, such as `learner`: a word for the hashes, so that no two draw the same."""
    image_bytes: int
    """Of one image, to say what a memory holds."""


class Position(NamedTuple):
    """Where the training stands. It is all that a draw may hang on, beside seed and role."""

    task: int
    """Which task it is of those that these weights have seen: an expert's is always 0."""
    epoch: int
    batch: int
    update: int
    """How many updates these weights have had."""


class Recalled(NamedTuple):
    """Samples to learn beside those of the batch."""

    rows: Whole
    """(repeat, sample): rows of the train images."""
    labels: Whole
    """(repeat, sample)"""


class Option:
    """Does nothing at any moment; an option overrides what it needs. In the order in which they are called."""

    layers: tuple[str, ...] = ()
    """Layers whose activity `after_update` wants to know."""

    @property
    def buffer_bytes(self) -> int:
        """What it keeps beside the weights, of all repeats."""
        return 0

    def begin_task(self, at: Position) -> None:
        """Before the first batch of each task, the first task too."""

    def recall(self, count: int, at: Position) -> Recalled | None:
        """More samples for a batch of `count`."""
        return None

    def regularise(self, gradients: Tensor) -> None:
        """Change gradients (repeat, param) in place, before the optimiser sees them."""

    def after_update(self, activity: Mapping[str, Tensor], at: Position) -> None:
        """After the optimiser: activity is layer -> (repeat, unit), mean |activation| in this batch's forward pass."""

    def offer(self, rows: Whole, labels: Whole, at: Position) -> None:
        """The batch's own samples (repeat, sample), after the update."""

    def state(self) -> dict[str, Any]:
        """A copy of all that a resumed option needs: tensors, numbers, text."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
