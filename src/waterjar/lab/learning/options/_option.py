"""When an option is asked, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.learning.optimisers import Optimiser
from waterjar.lab.learning.segments import Segment
from waterjar.lab.learning.weights import Weights
from waterjar.lab.networks import Network

Rows = NDArray[np.int64]


class Images(Protocol):
    """Where the images of rows stay, for those who need not keep them."""

    @property
    def n_bytes(self) -> int:
        """Of one image."""
        ...

    def inputs(self, rows: Rows) -> Tensor:
        """What the network sees of rows (repeat, sample): (repeat, sample, channel, height, width)."""
        ...


class Batch(NamedTuple):
    """One batch of every repeat, as the network sees it."""

    inputs: Tensor
    """(repeat, batch, channel, height, width): augmented and normalised, on the device."""
    targets: Tensor
    """(repeat, batch): the labels, on the device."""
    labels: Rows
    """The same on the CPU."""
    rows: Rows | None = None
    """(repeat, batch): rows of the train images, where these alone make the inputs."""


Batches = Callable[[], Iterable[Batch]]
"""The images of a task as they are, not augmented, from the beginning at every call."""


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
    images: Images | None = None
    """Where rows are images; None where inputs are augmented, and a memory has to keep what was seen."""
    objective: str = "sl"
    """The learner's objective, by name."""
    of_repeat: Callable[[int], Network] | None = None
    """The network with the weights of a repeat, until it is called for another."""


class Position(NamedTuple):
    """Where the training stands. It is all that a draw may hang on, beside seed and role."""

    task: int
    """Which task it is of those that these weights have seen: an expert's is always 0."""
    epoch: int
    batch: int
    update: int
    """How many updates these weights have had."""


class Option:
    """Does nothing at any moment; an option overrides what it needs. In the order in which they are called."""

    layers: tuple[str, ...] = ()
    """Layers whose activity `after_update` wants to know."""
    apart: bool = False
    """Whether its segments go through the network by themselves, after the batch."""

    @property
    def buffer_bytes(self) -> int:
        """What it keeps beside the weights, of all repeats."""
        return 0

    def begin_task(self, at: Position) -> None:
        """Before the first batch of each task, the first task too."""

    def recall(self, count: int, at: Position) -> Sequence[Segment]:
        """More to learn beside a batch of `count`."""
        return ()

    def regularise(self, gradients: Tensor) -> None:
        """Change gradients (repeat, param) in place, before the optimiser sees them."""

    def after_update(self, activity: Mapping[str, Tensor], at: Position) -> None:
        """After the optimiser: activity is layer -> (repeat, unit), mean |activation| in this batch's forward pass."""

    def offer(self, batch: Batch, logits: Tensor, at: Position) -> None:
        """The batch, after the update, and its logits (repeat, batch, class) from before it."""

    def end_task(self, batches: Batches) -> int:
        """After the last batch of each task, the last task too: what is kept is complete for one more.

        Gives how many samples of all repeats went forward and backward; one that did so k times counts k.
        """
        return 0

    def state(self) -> dict[str, Any]:
        """A copy of all that a resumed option needs: tensors, numbers, text."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
