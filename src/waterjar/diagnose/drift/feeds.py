"""What a run needs so that this family has something to measure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack
from waterjar.run.reader import Run

_OF_TASKS = ("probe_forgetting", "unread_forgetting")


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """A task for the eval sets, for what a later task takes from an earlier one."""
    sets, tasks = run.attributes["eval_sets"], run.attributes["tasks"]
    if sets and all(task < 0 for task in sets.values()):
        name = next(iter(sets))
        yield Lack(
            "no eval set belongs to a task",
            f'Recorder(..., eval_sets={{"{name}": "{tasks[0]}", ...}})',
            _OF_TASKS,
            f"--eval-task {shlex.quote(f'{name}={tasks[0]}')}",
            is_telling=False,
        )
