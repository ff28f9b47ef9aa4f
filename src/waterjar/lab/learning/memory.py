"""A replay memory of fixed size, one for each repeat, in which every example offered has the same chance to stand.

Reservoir sampling: Vitter, "Random sampling with a reservoir" (ACM TOMS 11, 1985), algorithm R. Example n (= 0, 1, ...)
takes place n while there is room; after that a place drawn uniformly from 0 ... n, if there is that place, and is not
kept otherwise. After n examples each of them is in with probability size / n. All that is drawn is a hash of the
repeat's seed and of the moment, so that no batch size, no other repeat and no resuming changes it.

What is replayed is EXACTLY what the learner saw. Where rows of the data set are what it sees, rows are kept; where
images are augmented or carry a shortcut, the inputs themselves are: an image without its patch in the memory would
quietly replay another task than the one that was learned, and a second random crop could cut the patch away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import Word, hash_words, integers
from waterjar.lab.learning.options._option import Batch, Context

BufferType = Literal["float32", "float16", "bfloat16"]
"""How inputs are kept. The short ones halve the memory, and round what the learner saw."""


class Remembered(NamedTuple):
    """Examples of a memory, for every repeat; no place twice."""

    inputs: Tensor
    """(repeat, sample, channel, height, width)"""
    labels: Tensor
    """(repeat, sample)"""
    logits: Tensor | None
    """(repeat, sample, class), where the memory keeps them"""


class Memory:
    """The memories of all repeats, allocated at once."""

    def __init__(self, size: int, context: Context, *, dtype: BufferType = "float32", logits: bool = False) -> None:
        repeats, like = len(context.seeds), context.weights.values
        network = context.network
        self.size = size
        self.offered = 0
        self._context = context
        self.labels = np.zeros((repeats, size), dtype=np.int64)
        self.rows = np.zeros_like(self.labels) if context.images is not None else None
        self.inputs: Tensor | None = None
        if context.images is None:
            shape = (repeats, size, *network.image_shape)
            self.inputs = torch.zeros(shape, dtype=getattr(torch, dtype), device=like.device)
        elif dtype != "float32":
            raise WaterjarError(
                f"buffer_dtype '{dtype}': rows of the data set are kept here, and no inputs: leave it out"
            )
        self.logits = torch.zeros(repeats, size, network.n_classes, device=like.device) if logits else None

    def __len__(self) -> int:
        """How many examples stand in that of a repeat."""
        return min(self.offered, self.size)

    @property
    def n_bytes(self) -> int:
        """Images, labels and logits, full or not. Images count where they stay in the data set, too: elsewhere one
        would have to keep them.
        """
        images = self._context.images
        kept = 0 if images is None else self.labels.size * images.n_bytes
        return int(kept + self.labels.nbytes + sum(one.nbytes for one in (self.inputs, self.logits) if one is not None))

    def offer(self, batch: Batch, logits: Tensor) -> None:
        """Show it a batch; it copies what it keeps. Of two examples that draw the same place the later one has it."""
        number = np.arange(self.offered, self.offered + batch.labels.shape[1])
        for repeat, seed in enumerate(self._context.seeds):
            drawn = integers(number + 1, "reservoir", self._context.role, seed, number)
            places = np.where(number < self.size, number, drawn)
            taken = {int(place): at for at, place in enumerate(places) if place < self.size}
            if taken:
                self._keep(repeat, list(taken), list(taken.values()), batch, logits)
        self.offered += len(number)

    def _keep(self, repeat: int, places: list[int], of: list[int], batch: Batch, logits: Tensor) -> None:
        self.labels[repeat, places] = batch.labels[repeat, of]
        if self.rows is not None:
            assert batch.rows is not None  # whoever has a place for images has rows of them
            self.rows[repeat, places] = batch.rows[repeat, of]
        for kept, seen in ((self.inputs, batch.inputs), (self.logits, logits)):
            if kept is not None:
                at, which = (torch.tensor(some, device=kept.device) for some in (places, of))
                kept[repeat].index_copy_(0, at, seen[repeat].detach()[which].to(kept))

    def draw(self, count: int, *words: Word) -> Remembered:
        """Different examples of each repeat, `count` or all there are: the smallest hashes of words and place."""
        filled = len(self)
        if not filled:
            raise WaterjarError("a draw from an empty replay memory")
        name, *moment = words
        seeds = np.array(self._context.seeds, dtype=np.int64)[:, None]
        hashes = hash_words(name, self._context.role, seeds, *moment, np.arange(filled)[None])
        wanted = min(count, filled)
        places = np.argpartition(hashes, wanted - 1, axis=1)[:, :wanted]
        places.sort(axis=1)  # argpartition leaves them in an order of its own
        device = self._context.weights.values.device
        labels = torch.from_numpy(np.take_along_axis(self.labels, places, 1)).to(device)
        at = torch.from_numpy(places).to(device)
        logits = None if self.logits is None else _taken(self.logits, at)
        if self.inputs is not None:
            return Remembered(_taken(self.inputs, at).to(self._context.weights.values.dtype), labels, logits)
        assert self.rows is not None and self._context.images is not None
        return Remembered(self._context.images.inputs(np.take_along_axis(self.rows, places, 1)), labels, logits)

    def state(self) -> dict[str, Any]:
        """Contents and counter, copied."""
        tensors = {"inputs": self.inputs, "logits": self.logits}
        kept = {name: value.clone() for name, value in tensors.items() if value is not None}
        rows = {"rows": self.rows, "labels": self.labels}
        kept |= {name: torch.from_numpy(value.copy()) for name, value in rows.items() if value is not None}
        return {"offered": self.offered, **kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state of a memory of the same size."""
        for name, mine in self.state().items():
            if name != "offered" and (name not in state or state[name].shape != mine.shape):
                raise WaterjarError(f"the state is of another replay memory: '{name}' is not {tuple(mine.shape)}")
        self.offered = state["offered"]
        self.labels[:] = state["labels"].numpy()
        if self.rows is not None:
            self.rows[:] = state["rows"].numpy()
        for name, kept in (("inputs", self.inputs), ("logits", self.logits)):
            if kept is not None:
                kept.copy_(state[name])


def _taken(kept: Tensor, places: Tensor) -> Tensor:
    """(repeat, place, ...) at places (repeat, sample): (repeat, sample, ...)."""
    return torch.stack([own[at] for own, at in zip(kept, places, strict=True)])
