"""Which runs of a study count: those that can be read, of cells whose runs were trained alike.

One run that does not fit costs the numbers of its cell, not those of the others. Whatever is left out is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waterjar.errors import WaterjarError
from waterjar.run.courses import GROUPS, Course, course_of
from waterjar.run.index import MISANNOTATED, Entry
from waterjar.run.join import UnlikeError
from waterjar.run.study import Study, load_runs

_COURSE = ("step", "epoch", "total_epoch", "train_task", "train_task_index", "visit")


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
    apart = unlike(study)
    names = [entry.name for cell in apart for entry in study.cells[cell]]
    left_out = " is left out" * (len(apart) < len(study.cells))
    notes = [f"{study.cell_names[cell]}{left_out}: {why}" for cell, why in apart.items()]
    return study.without(names if left_out else [], notes) if apart else study


def unlike(study: Study) -> dict[str, str]:
    """cell -> why its runs do not fit together, of those whose runs do not."""
    return {cell: why for cell, entries in study.cells.items() if (why := _unlike(study, entries))}


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


def _unlike(study: Study, entries: Sequence[Entry]) -> str:
    """Why the runs of a cell do not fit together; empty where they do."""
    if len({(one.progress["step"], one.progress.get("total_epoch")) for one in entries}) < 2:
        return ""
    runs = [study.open(entry) for entry in entries]
    group = next((name for name in GROUPS if any(f"{name}/epoch" in run.nodes for run in runs)), "")
    try:
        if group:
            load_runs(runs, group, _COURSE)
    except UnlikeError as error:
        return str(error)
    except WaterjarError:  # for whoever reads all of it to say
        pass
    return ""
