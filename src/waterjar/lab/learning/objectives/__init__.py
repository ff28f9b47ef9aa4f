"""What a repeat makes of its logits, one objective a file, found by module name.

An objective is a module with a pydantic `Settings` and `build(settings) -> Objective`. It is given the logits of all
repeats at once, and answers with its gradient by them, worked out by hand: it is short, and autograd would add a tenth
to the step of a small network. It must be a pure function of tensors (no generators, no `if` on values, nothing
in place on what it is given): where a network needs it, it runs inside `torch.func.vmap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from torch import Tensor

from waterjar.run.shelf import Shelf

__all__ = ["SHELF", "Objective", "Outcome", "make", "names", "parse"]


class Outcome(NamedTuple):
    """What an objective makes of a batch of every repeat."""

    by_logits: Tensor
    """(repeat, batch, class): the gradient of each repeat's objective by its logits. It is descended."""
    state: dict[str, Tensor]
    """(repeat,) each: the objective's state after the batch."""
    reward: Tensor | None = None
    """(repeat, batch): 1 where the answer that was GIVEN was right; None if the answers are the greedy ones."""


class Objective(Protocol):
    """From logits to their gradient."""

    @property
    def draws(self) -> bool:
        """Whether it needs a uniform number for every sample."""
        ...

    def start(self) -> dict[str, float]:
        """The state of a repeat before its first batch, by name."""
        ...

    def judge(self, logits: Tensor, labels: Tensor, uniform: Tensor, state: Mapping[str, Tensor]) -> Outcome:
        """Logits (repeat, batch, class); labels, int64, and uniform numbers (repeat, batch); state (repeat,) each."""
        ...


SHELF = Shelf("", "learner", __name__)  # as study files call it
"""Closed to other packages: what it holds will be asked otherwise when the two laboratories become one."""
names, parse = SHELF.names, SHELF.parse


def make(name: str, settings: Mapping[str, object]) -> Objective:
    """An objective by its name.

    >>> make("rl", {"baseline": "running"}).start()
    {'mean_reward': 0.0, 'beginning': 1.0}
    """
    objective: Objective = SHELF.module(name).build(parse(name, settings))
    return objective
