"""What runs were trained on and for how long, and in which of that the runs of one cell differ.

Runs of one cell are put side by side only where they were trained alike. Who asks for them together is told which run
was trained otherwise, whatever was asked for.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from waterjar.errors import where_as
from waterjar.run.join import UnlikeError
from waterjar.run.reader import Run
from waterjar.run.visits import stretches, visits_by_step

GROUPS = ("performance", "train", "monitor")
"""Where the course of a training is read, the first that was recorded."""
_FEW = 4


class Course(NamedTuple):
    """What a run was trained on, and for how long."""

    tasks: tuple[str, ...]
    epochs: tuple[float, ...]
    """Of every visit, as far as it was recorded."""

    @property
    def words(self) -> str:
        """As a sentence has it: "4 epochs a task", "2, 4 and 4 epochs"."""
        told = [f"{n:g}" for n in self.epochs]
        alike = f"{told[0]} epoch{'s' * (self.epochs[0] != 1)}"
        if len(told) > 1 and len(set(told)) == 1:
            return f"{alike} a task"
        if len(told) > _FEW:
            return f"{min(self.epochs):g} to {max(self.epochs):g} epochs a task"
        return f"{', '.join(told[:-1])} and {told[-1]} epochs" if len(told) > 1 else alike


def course_of(run: Run) -> Course | None:
    """How a run was trained; None where it has recorded no steps."""
    group = next((name for name in GROUPS if f"{name}/epoch" in run.nodes), "")
    if not group or not run.nodes[f"{group}/epoch"]["shape"][0]:
        return None
    known = visits_by_step(run)
    steps, epochs = (run.array(f"{group}/{name}") for name in ("step", "epoch"))
    visits = np.array([known[int(step)][0] for step in steps])
    names = dict(enumerate(map(str, run.attributes["tasks"])))
    rows = stretches(visits)
    tasks = tuple(names.get(known[int(steps[part[0]])][1], "") for part in rows)
    return Course(tasks, tuple(float(np.asarray(epochs, float)[part].max()) for part in rows))


@contextlib.contextmanager
def explained(runs: Sequence[Run]) -> Iterator[None]:
    """Where runs are joined: an error because they are unlike says which were trained otherwise."""
    try:
        yield
    except UnlikeError as error:
        raise UnlikeError(_sentence({run.path.name: course_of(run) for run in runs}, str(error))) from None


def _sentence(courses: Mapping[str, Course | None], otherwise: str) -> str:
    """Which runs were trained for another length than most; where it is not the length, what was found."""
    told = {run: course for run, course in courses.items() if course is not None}
    usual = Counter(told.values()).most_common()
    if not usual or len({course.tasks for course in told.values()}) > 1:
        return otherwise
    most = max((course for course, n in usual if n == usual[0][1]), key=lambda course: sum(course.epochs))
    odd = [run for run, course in told.items() if course != most]
    if not odd:
        return otherwise
    others = "the others" if len(told) - len(odd) > 1 else next(run for run in told if run not in odd)
    parts = [f"{run} trained {told[run].words}" for run in odd[:_FEW]] + ["..."] * (len(odd) > _FEW)
    without = " and ".join(f'name != "{run}"' for run in odd[:_FEW])
    usual_words = most.words.partition(" epoch")[0] if told[odd[-1]].words.endswith("a task") else most.words
    return f"{', '.join(parts)}, {others} {usual_words}. Of these alone it is measured with {where_as(without)}"
