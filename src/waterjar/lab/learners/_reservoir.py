"""A replay memory of fixed size in which every example seen so far has the same chance to stand.

Reservoir sampling: Vitter, "Random sampling with a reservoir" (ACM TOMS 11, 1985), algorithm R. The n-th
example (n = 0, 1, ...) takes place n while there is room; after that it takes place r, drawn uniformly from
0 ... n, if r < capacity, and is not kept otherwise. After n examples each of them is in with probability
capacity / n.

What is stored is EXACTLY what the learner saw: the input after augmentation, shortcut and normalisation. An
un-patched image in the memory would quietly replay another task than the one that was learned. For the same
reason it is replayed as it is. Reference implementations store the plain image and augment it anew at each
replay; here a second random crop could cut the patch away, so what varies is which view of an image was kept.
An example counts once for each time it is seen: several epochs give several views of it, as in the papers' code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import hash_words
from waterjar.lab.learners._protocol import State

BufferType = Literal["float32", "float16", "bfloat16"]
"""How inputs are stored. The short ones halve the memory, and round what the learner saw."""

_TYPES: Mapping[BufferType, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


class Memories(NamedTuple):
    """A draw from the memory, without repetition in it."""

    inputs: Tensor
    """(draw, channel, height, width)"""
    labels: Tensor
    """(draw,) int64"""
    logits: Tensor | None
    """(draw, class), where the memory keeps them"""
    tasks: Tensor
    """(draw,) int64: in which task it was seen"""


class Reservoir:
    """The memory. All of it is allocated at once, on `device`; the random numbers are the CPU's.

    n_logits: keep that many logits with each example; 0 for none.
    """

    def __init__(
        self,
        capacity: int,
        input_shape: tuple[int, ...],
        *,
        seed: int,
        n_logits: int = 0,
        dtype: BufferType = "float32",
        device: torch.device | str = "cpu",
    ) -> None:
        if capacity < 1:
            raise WaterjarError(f"a replay memory of {capacity} examples: it needs room for at least one")
        self.capacity = capacity
        self.seen = 0
        self._inputs = torch.zeros((capacity, *input_shape), dtype=_TYPES[dtype], device=device)
        self._labels = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._logits = torch.zeros((capacity, n_logits), device=device) if n_logits else None
        self._tasks = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._generator = torch.Generator().manual_seed(int(hash_words("replay memory", seed)))

    def __len__(self) -> int:
        """How many examples stand in it."""
        return min(self.seen, self.capacity)

    @property
    def n_bytes(self) -> int:
        """What is allocated, full or not."""
        return sum(tensor.nbytes for tensor in self._tensors().values())

    @property
    def contents(self) -> Memories:
        """All that stands in it, by place; a view, not a copy."""
        size = len(self)
        logits = None if self._logits is None else self._logits[:size]
        return Memories(self._inputs[:size], self._labels[:size], logits, self._tasks[:size])

    def add(self, inputs: Tensor, labels: Tensor, task: int, logits: Tensor | None = None) -> None:
        """Show it a batch; it copies what it keeps. The outcome does not hang on how a stream is cut into batches."""
        if inputs.shape[1:] != self._inputs.shape[1:] or (logits is None) != (self._logits is None):
            raise WaterjarError(
                f"the replay memory keeps inputs {tuple(self._inputs.shape[1:])} and "
                f"{'no ' if self._logits is None else ''}logits; it was shown inputs {tuple(inputs.shape[1:])} and "
                f"{'no ' if logits is None else ''}logits"
            )
        rank = torch.arange(self.seen, self.seen + len(labels))
        # 2^62 / n is so large that the remainder's bias, n / 2^62, is beyond any measurement.
        draw = torch.randint(1 << 62, (len(labels),), generator=self._generator) % (rank + 1)
        places = torch.where(rank < self.capacity, rank, draw).tolist()
        self.seen += len(labels)
        # Two examples of one batch may take the same place: the later one has it, as if shown one by one.
        taken = {place: row for row, place in enumerate(places) if place < self.capacity}
        if not taken:
            return
        at = torch.tensor(list(taken), device=self._labels.device)
        row = torch.tensor(list(taken.values()), device=inputs.device)
        self._inputs.index_copy_(0, at, inputs.detach()[row].to(self._inputs))
        self._labels.index_copy_(0, at, labels[row].to(self._labels))
        self._tasks.index_fill_(0, at, task)
        if self._logits is not None and logits is not None:
            self._logits.index_copy_(0, at, logits.detach()[row].to(self._logits))

    def draw(self, count: int) -> Memories:
        """`count` different examples, uniformly; all there are where that is fewer."""
        size = len(self)
        if size == 0:
            raise WaterjarError("a draw from an empty replay memory")
        places = torch.randperm(size, generator=self._generator)[:count].to(self._labels.device)
        logits = None if self._logits is None else self._logits[places]
        return Memories(self._inputs[places], self._labels[places], logits, self._tasks[places])

    def class_counts(self, n_classes: int) -> Tensor:
        """How many examples of each class stand in it, (class,) int64."""
        return torch.bincount(self._labels[: len(self)], minlength=n_classes)

    def state(self) -> State:
        """Contents, counter and generator, copied."""
        tensors: State = {key: tensor.clone() for key, tensor in self._tensors().items()}
        return tensors | {"seen": self.seen, "generator": self._generator.get_state()}

    def load_state(self, state: State) -> None:
        """Go back to a state of a memory of the same size."""
        for key, tensor in self._tensors().items():
            if key not in state or state[key].shape != tensor.shape or state[key].dtype != tensor.dtype:
                raise WaterjarError(f"the state is of another replay memory: '{key}' is not {tuple(tensor.shape)}")
            tensor.copy_(state[key])
        self.seen = state["seen"]
        self._generator.set_state(state["generator"])

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {"inputs": self._inputs, "labels": self._labels, "tasks": self._tasks}
        return tensors if self._logits is None else tensors | {"logits": self._logits}
