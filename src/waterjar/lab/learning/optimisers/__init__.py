"""Optimisers over (repeat, param), one a file, found by module name.

An optimiser is a module with a pydantic `Settings` and `build(settings, values) -> Optimiser`. Its rule is elementwise,
so that it is the same for one repeat and for many. Features and readout have learning rates of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from waterjar.run.shelf import Shelf


class Optimiser(Protocol):
    """What turns gradients into updates."""

    def step(self, values: Tensor, gradients: Tensor, rates: tuple[float, float], features: int) -> None:
        """Update `values` (repeat, param) in place: columns before `features` at the first rate, others at the second.

        `gradients` may be used as working space.
        """
        ...

    @property
    def plain(self) -> bool:
        """Whether a step is θ -= rate g and nothing else."""
        ...

    @property
    def memories(self) -> dict[str, Tensor]:
        """What is kept per parameter, (repeat, param) each: momenta. A renewed unit starts without."""
        ...

    def begin_task(self) -> None:
        """Forget everything: a momentum of the last task is no property of this one."""
        ...

    def state(self) -> dict[str, object]:
        """A copy of all that a resumed optimiser needs."""
        ...

    def load_state(self, state: Mapping[str, object]) -> None:
        """Back to a state."""
        ...


SHELF = Shelf("", "optimiser", __name__)
"""Closed to other packages: what it holds will be asked otherwise when the two laboratories become one."""
names, parse = SHELF.names, SHELF.parse


def make(name: str, settings: Mapping[str, object], values: Tensor) -> Optimiser:
    """An optimiser for parameters like `values` (repeat, param)."""
    built: Optimiser = SHELF.module(name).build(parse(name, settings), values)
    return built
