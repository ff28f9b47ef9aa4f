"""Experience replay: each update also sees samples of earlier batches.

Robins, "Catastrophic forgetting, rehearsal and pseudorehearsal" (Connection Science, 1995); in this form Chaudhry et
al., "On tiny episodic memories in continual learning" (2019), algorithm 1, with a reservoir (see `memory`):

    B_M ~ memory,    θ -= lr ∇ mean objective over B_n ∪ B_M,    memory <- reservoir(B_n)

The mean is over batch and replay together, so every sample weighs the same, and both go through the network in ONE
batch: with batch norm they share their statistics.

`offered: first_epoch` offers each image once, in the first epoch of its task: the memory is a uniform sample of the
IMAGES of all tasks so far, however long each was trained. `every_epoch` offers it each time it is seen, as the paper's
code does: several epochs give several views of an augmented image. With the learner `rl` a replayed image is met again,
not remembered: an action is drawn from the policy as it is now and paid for, so the gradient stays that of the expected
reward on the images shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from torch import Tensor

from waterjar.lab.grown import Grown
from waterjar.lab.learning.memory import BufferType, Memory
from waterjar.lab.learning.options._option import Batch, Context, Option, Position
from waterjar.lab.learning.segments import Segment

When = Literal["later_tasks", "always"]
Offered = Literal["first_epoch", "every_epoch"]


class Settings(Grown):
    """The memory, and how much of it is shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ADDED: ClassVar = ("offered", "dtype")

    size: Annotated[int, Field(ge=1)] = 500
    """Images in memory, of each repeat."""
    samples: Annotated[int, Field(ge=1)] | None = None
    """Replayed with each batch, without repetition; None for as many as the batch has. Fewer where there are fewer."""
    replay: When = "later_tasks"
    """From the second task on, or from the second batch on. The memory fills either way."""
    offered: Offered = "first_epoch"
    """Which epochs of a task the memory is shown."""
    dtype: BufferType = "float32"
    """How inputs are kept, where they are."""


class Replaying(Option):
    """An option with a memory."""

    settings: Any
    """Its size, samples, replay and offered are read here."""

    def __init__(self, settings: Any, memory: Memory) -> None:
        self.settings = settings
        self.memory = memory

    @property
    def buffer_bytes(self) -> int:
        """The memory, full or not."""
        return self.memory.n_bytes

    def has_something(self, at: Position) -> bool:
        """Whether there is something to replay now."""
        return bool(len(self.memory)) and (self.settings.replay == "always" or at.task > 0)

    def offer(self, batch: Batch, logits: Tensor, at: Position) -> None:
        """Into the memory."""
        if at.epoch == 0 or self.settings.offered == "every_epoch":
            self.memory.offer(batch, logits)

    def state(self) -> dict[str, Any]:
        """The memory's."""
        return self.memory.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
        self.memory.load_state(state)


class Replay(Replaying):
    """Its samples are added to the batch."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, Memory(settings.size, context, dtype=settings.dtype))

    def recall(self, count: int, at: Position) -> Sequence[Segment]:
        """As many as are asked for, of different places of the memory."""
        if not self.has_something(at):
            return ()
        drawn = self.memory.draw(self.settings.samples or count, "replay", at.task, at.epoch, at.batch)
        return (Segment(drawn.inputs, drawn.labels),)


build = Replay
