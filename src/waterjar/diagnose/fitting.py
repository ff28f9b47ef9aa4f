"""Which runs of a study count: those that can be read, of cells whose runs were trained alike.

One run that does not fit costs the numbers of its cell, not those of the others. Whatever is left out is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run.index import MISANNOTATED, Entry
from waterjar.run.join import UnlikeError
from waterjar.run.reader import Run
from waterjar.run.study import Study, load_runs
from waterjar.run.visits import stretches, visits_by_step

_COURSE = ("step", "epoch", "total_epoch", "train_task", "train_task_index", "visit")
_GROUPS = ("performance", "train", "monitor")
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
        if len(told) > 1 and len(set(told)) == 1:
            return f"{told[0]} epochs a task"
        if len(told) > _FEW:
            return f"{min(self.epochs):g} to {max(self.epochs):g} epochs a task"
        return f"{', '.join(told[:-1])} and {told[-1]} epochs" if len(told) > 1 else f"{told[0]} epochs"


def fitting(study: Study) -> Study:
    """The study without runs whose annotations cannot be read, and without cells whose runs do not fit together.

    Its notes say which, and why. A damaged run is an error: what to do about it is for the user to say. Where no cell
    fits, all stay: what does not need runs to be joined can be measured.
    """
    study = study.confirmed()
    gone: dict[str, str] = {}
    for entry in (*study.entries, *study.probe_runs):
        if entry.fault and entry.status == MISANNOTATED:
            gone[entry.name] = f"{entry.name} is left out: {entry.fault}"
        elif entry.fault and entry in study.entries:
            raise WaterjarError(entry.fault)
    if gone:
        study = study.without(gone, list(gone.values()))
        if not study.entries:
            raise WaterjarError("\n".join(gone.values()))
    unlike = {cell: why for cell, entries in study.cells.items() if (why := _unlike(study, entries))}
    names = [entry.name for cell in unlike for entry in study.cells[cell]]
    left_out = " is left out" * (len(unlike) < len(study.cells))
    notes = [f"{study.cell_names[cell]}{left_out}: {why}" for cell, why in unlike.items()]
    return study.without(names if left_out else [], notes) if unlike else study


def lengths(study: Study) -> dict[str, Course]:
    """cell -> how its longest run was trained, where that is told by steps; empty where no two cells can differ."""
    longest = {cell: max(entries, key=lambda one: int(one.progress["step"])) for cell, entries in study.cells.items()}
    longest = {cell: entry for cell, entry in longest.items() if entry.status == "sealed"}
    if len({(entry.progress["step"], entry.progress.get("total_epoch")) for entry in longest.values()}) < 2:
        return {}
    found = {cell: course_of(study.open(entry)) for cell, entry in longest.items()}
    return {cell: course for cell, course in found.items() if course is not None}


def unequal_lengths(study: Study) -> list[tuple[str, str]]:
    """(name of a cell, how long it was trained), where that is not as long as most others on the same tasks."""
    known, shown, said = lengths(study), study.cell_names, []
    for cell, course in known.items():
        alike = [other for other, one in known.items() if one.tasks == course.tasks]
        counts = Counter(known[other].epochs for other in alike)
        usual = next(other for other in alike if counts[known[other].epochs] == max(counts.values()))
        if note := length_note(course, known[usual], shown[usual]):
            said.append((shown[cell], note))
    return said


def length_note(one: Course | None, other: Course | None, name: str) -> str:
    """What is to be said of a cell that was trained for another length than another on the same tasks; else nothing."""
    if one is None or other is None or one.tasks != other.tasks or one.epochs == other.epochs:
        return ""
    ends = (one.words.partition(" "), other.words.partition(" "))
    theirs = ends[1][0] if ends[0][2] == ends[1][2] else other.words
    return f"was trained {one.words}, {name} {theirs}"


def course_of(run: Run) -> Course | None:
    """How a run was trained; None where it has recorded no steps."""
    group = next((name for name in _GROUPS if f"{name}/epoch" in run.nodes), "")
    if not group or not run.nodes[f"{group}/epoch"]["shape"][0]:
        return None
    known = visits_by_step(run)
    steps, epochs = (run.array(f"{group}/{name}") for name in ("step", "epoch"))
    visits = np.array([known[int(step)][0] for step in steps])
    names = dict(enumerate(map(str, run.attributes["tasks"])))
    rows = stretches(visits)
    tasks = tuple(names.get(known[int(steps[part[0]])][1], "") for part in rows)
    return Course(tasks, tuple(float(np.asarray(epochs, float)[part].max()) for part in rows))


def _unlike(study: Study, entries: Sequence[Entry]) -> str:
    """Why the runs of a cell do not fit together; empty where they do."""
    if len({(one.progress["step"], one.progress.get("total_epoch")) for one in entries}) < 2:
        return ""
    runs = [study.open(entry) for entry in entries]
    group = next((name for name in _GROUPS if any(f"{name}/epoch" in run.nodes for run in runs)), "")
    try:
        if group:
            load_runs(runs, group, _COURSE)
    except UnlikeError as error:
        return _sentence({run.path.name: course_of(run) for run in runs}, str(error))
    except WaterjarError:  # for whoever reads all of it to say
        pass
    return ""


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
    usual_words = most.words.removesuffix(" epochs a task") if told[odd[-1]].words.endswith("a task") else most.words
    return f"{', '.join(parts)}, {others} {usual_words}. Of these alone it is measured with --where '{without}'"
