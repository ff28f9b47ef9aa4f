"""Dark experience replay: the network shall also give the logits that it once gave.

Buzzega, Boschini, Porrello, Abati & Calderara, "Dark experience for general continual learning: a strong, simple
baseline" (NeurIPS 2020), the objective of DER++:

    L = CE(y, f(x))  +  alpha |z' - h(x')|^2  +  beta CE(y'', f(x''))

with (x', z') and (x'', y'') two independent draws from a reservoir that keeps the logits h(x) of each example as they
were when it was seen, in training mode, before the update. CE stands for the learner's own objective.

The square is the MEAN over classes in the authors' code (their published alphas belong to it, and the default here);
the equation as printed is the sum: `distance`.

The authors pass batch, first and second draw through the network one after the other. Without batch norm, one pass of
all three gives the same gradient (to rounding) and is faster. With it, it would not: the statistics would be those of
the mixture. `forward: auto` goes together only where it makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab.learning.memory import BufferType, Memory
from waterjar.lab.learning.options._option import Context, Position
from waterjar.lab.learning.options.replay import Offered, Replaying, When
from waterjar.lab.learning.segments import Distance, Segment
from waterjar.lab.networks import normalises_by_batch


class Settings(BaseModel):
    """The memory and the two weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    alpha: Annotated[float, Field(ge=0.0)] = 0.1
    """Weight of the distance to the old logits."""
    beta: Annotated[float, Field(ge=0.0)] = 0.5
    """Weight of the objective on replayed labels."""
    size: Annotated[int, Field(ge=1)] = 500
    """Images in memory, of each repeat."""
    samples: Annotated[int, Field(ge=1)] | None = None
    """In each of the two draws of an update; None for as many as the batch has."""
    distance: Distance = "mean"
    """|z - h|^2 over classes."""
    forward: Literal["auto", "separate", "together"] = "auto"
    replay: When = "later_tasks"
    """From the second task on, or from the second batch on. The memory fills either way."""
    offered: Offered = "first_epoch"
    """Which epochs of a task the memory is shown."""
    dtype: BufferType = "float32"
    """How inputs are kept, where they are."""


class Derpp(Replaying):
    """Two segments beside the batch."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, Memory(settings.size, context, dtype=settings.dtype, logits=True))
        mixes = normalises_by_batch(context.network)
        self.apart = settings.forward == "separate" or (settings.forward == "auto" and mixes)

    def recall(self, count: int, at: Position) -> Sequence[Segment]:
        """One draw for the logits, another for the labels."""
        if not self.has_something(at):
            return ()
        samples, moment = self.settings.samples or count, (at.task, at.epoch, at.batch)
        dark, plain = (self.memory.draw(samples, words, *moment) for words in ("old logits", "old labels"))
        assert dark.logits is not None  # this memory keeps them
        return (
            Segment(dark.inputs, dark.logits, self.settings.alpha, self.settings.distance),
            Segment(plain.inputs, plain.labels, self.settings.beta),
        )


build = Derpp
