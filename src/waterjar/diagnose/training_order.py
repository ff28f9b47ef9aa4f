"""The order in which a run trained its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError


def order_of_training(index: NDArray[np.integer[Any]], steps: NDArray[np.integer[Any]], where: str) -> tuple[int, ...]:
    """The tasks in the order in which they were trained, whatever order was declared; joint training is none of them.

    A task that is visited again, with others in between, has no one curve: an error, until runs record visits.

    >>> order_of_training(np.array([1, 1, -1, 0]), np.arange(4), "run")
    (1, 0)
    """
    begins = np.flatnonzero(np.diff(index, prepend=-2) != 0) if len(index) else np.empty(0, np.intp)
    visits = [int(index[place]) for place in begins if index[place] >= 0]
    for number, task in enumerate(visits):
        if task in visits[:number]:
            again = [place for place in begins if index[place] == task][1]
            raise WaterjarError(
                f"{where}: task {task} is trained again from step {steps[again]} on, after others. A task that is "
                "trained twice has no one curve, and its visits are never merged: record the second time as a task of "
                "its own, in tasks=[...]"
            )
    return tuple(visits)


def order_note(trained: Sequence[int], names: Sequence[str]) -> str:
    """What is to be said where tasks were trained in another order than declared; else nothing.

    >>> order_note([1, 0], ["a", "b"]), order_note([0, 2], ["a", "b", "c"])
    ('trained in the order b, a, declared as a, b: the recorded order counts', '')
    """
    if list(trained) == sorted(trained):
        return ""
    recorded = ", ".join(names[task] for task in trained)
    return f"trained in the order {recorded}, declared as {', '.join(names)}: the recorded order counts"
