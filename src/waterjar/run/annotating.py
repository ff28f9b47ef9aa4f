"""Adding what was forgotten while recording: checked against the runs, written beside them, taken away again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.annotated import labels_of, samples_of
from waterjar.run.annotations import PARTS, merged, read_annotations, remove_annotations, write_annotations
from waterjar.run.arrays import to_numpy
from waterjar.run.coordinates import finite, names_of, place_of_task, whole
from waterjar.run.identity import text
from waterjar.run.intake import check_labels

if TYPE_CHECKING:
    from waterjar.run.reader import Run

_LABEL = "probe_samples/label"
ALL = "all"


def annotate(
    folder: Path,
    runs: Sequence[Run],
    *,
    eval_task: Mapping[str, str | int] | None = None,
    chance: float | Mapping[str, float] | None = None,
    classes: Sequence[str] | None = None,
    probe_labels: ArrayLike | Mapping[str, ArrayLike] | None = None,
    note: str | None = None,
    remove: str | Collection[str] = (),
) -> None:
    """Add to what was told of a run, or of all runs of a study, in whose `folder` it is kept.

    An annotation fills what is missing: one that contradicts what a run has recorded is refused. What was told before
    is replaced, eval sets one by one. Of a study every part has to fit all runs that it says something about, and at
    least one.

    Parameters
    ----------
    runs : as they were recorded.
    eval_task : eval set -> the task it belongs to, by name or place, of sets that were recorded as of none.
    chance : accuracy of guessing where all classes compete; one number, or one for every task by its name.
    classes : names of the classes, as the Recorder takes them.
    probe_labels : labels of the samples behind snapshots: (sample,) by eval set, or (eval_set, sample), or (repeat,
        eval_set, sample).
    note : a sentence.
    remove : parts to take away before, by these names; "all" takes everything away.
    """
    gone = _parts(remove)
    if not runs and not gone:
        raise WaterjarError(f"{folder} holds no runs: there is nothing to annotate")
    before = {} if gone == set(PARTS) else _before(folder, gone)
    new: dict[str, Any] = {}
    if eval_task is not None:
        new["eval_task"] = _eval_task(runs, eval_task)
    if chance is not None:
        new["chance"] = _chance(runs, chance)
    if classes is not None:
        new["classes"] = _classes(runs, classes)
    if probe_labels is not None:
        new["probe_labels"] = _probe_labels(runs, probe_labels)
    if note is not None:
        new["note"] = text("note", note)
    if not new and not gone:
        raise WaterjarError(f"annotate got nothing: give at least one of {', '.join((*PARTS, 'remove'))}")
    entries = merged(before, new)
    if entries:
        write_annotations(folder, entries)
    else:
        remove_annotations(folder)


def _before(folder: Path, gone: Collection[str]) -> dict[str, Any]:
    """What was told before, without what is to go."""
    known = read_annotations(folder)
    return {} if known is None else {part: value for part, value in known.entries.items() if part not in gone}


def _parts(remove: str | Collection[str]) -> set[str]:
    names = [remove] if isinstance(remove, str) else list(remove)
    for name in names:
        if name not in (*PARTS, ALL):
            raise unknown_name("remove: annotation", name, (*PARTS, ALL))
    return set(PARTS) if ALL in names else set(names)


def _eval_task(runs: Sequence[Run], given: object) -> dict[str, str | int]:
    if not isinstance(given, Mapping) or not given:
        raise WaterjarError(f"eval_task={brief(repr(given))}: expected a mapping name of an eval_set -> its task")
    found: dict[str, str | int] = {}
    known_tasks = _union(runs, "tasks")
    for name, asked in given.items():
        is_place = isinstance(asked, str) and asked.isdecimal() and asked not in known_tasks  # of a command line
        task = int(asked) if is_place else asked
        having = [run for run in runs if name in run.attributes["eval_sets"]]
        if not having:
            raise unknown_name(f"{_where(runs)}: eval_set", name, _union(runs, "eval_sets"))
        where, fits = f"eval_task['{name}']", []
        for run in having:
            tasks: list[str] = run.attributes["tasks"]
            if task in tasks if isinstance(task, str) else whole(where, task) < len(tasks):
                fits.append((run, place_of_task(task, tasks, where)))
        if not fits:
            raise _no_task(having, task, where)
        for run, place in fits:
            tasks, recorded = run.attributes["tasks"], run.attributes["eval_sets"][name]
            if recorded not in (-1, place):
                raise _contradiction(run, f"that eval set '{name}' belongs to task '{tasks[recorded]}'", task)
            if place == -1:
                raise WaterjarError(f"{where}=-1: expected a task; remove=['eval_task'] takes an annotation back")
        one = len(runs) == 1
        found[str(name)] = fits[0][0].attributes["tasks"][fits[0][1]] if one or isinstance(task, str) else int(task)
    return found


def _no_task(runs: Sequence[Run], task: object, where: str) -> WaterjarError:
    if isinstance(task, str):
        return unknown_name(f"{_where(runs)}: {where}: task", task, _union(runs, "tasks"))
    most = max(len(run.attributes["tasks"]) for run in runs)
    return WaterjarError(f"{_where(runs)}: {where}={task}: expected a task from 0 to {most - 1}, or its name")


def _chance(runs: Sequence[Run], given: object) -> float | dict[str, float]:
    if not isinstance(given, Mapping):
        return _share("chance", given)
    known = _union(runs, "tasks")
    for name in given:
        if name not in known:
            raise unknown_name(f"{_where(runs)}: chance: task", name, known)
    for run in runs:
        tasks = run.attributes["tasks"]
        missing = [task for task in tasks if task not in given]
        if missing and len(missing) < len(tasks):
            raise WaterjarError(
                f"{run.path}: chance lacks task '{missing[0]}': expected one number, or one of every task"
            )
    return {str(name): _share(f"chance['{name}']", value) for name, value in given.items()}


def _share(where: str, value: object) -> float:
    number = finite(where, value)
    if not 0 <= number < 1:
        raise WaterjarError(f"{where}={number:g}: expected an accuracy in [0, 1), such as 0.1 of ten classes")
    return number


def _classes(runs: Sequence[Run], given: object) -> list[str]:
    names = names_of("classes", given)
    if not names:
        raise WaterjarError("classes=[]: expected at least one name")
    for run in runs:
        recorded = run.attributes.get("classes")
        if recorded and recorded != names:
            raise _contradiction(run, f"the classes {', '.join(recorded)}", ", ".join(names))
        if _LABEL in run.nodes:
            check_labels(run.array(_LABEL), names, f"{run.path}: probe_samples/label")
        for key, node in run.nodes.items():
            dims = node.get("dimension_names", ())
            size = node["shape"][dims.index("class")] if "class" in dims else len(names)
            if size != len(names):
                raise WaterjarError(f"{run.path}: classes has {len(names)} names, {key} has {size} classes")
    return names


def _probe_labels(runs: Sequence[Run], given: object) -> dict[str, Any]:
    having = [run for run in runs if samples_of(run.nodes) is not None]
    if not having:
        raise WaterjarError(f"{_where(runs)}: no snapshots of samples were recorded that probe_labels could be of")
    found = _by_set(having[0], given)
    for run in having:
        shape = samples_of(run.nodes)
        assert shape is not None
        sets = run.attributes["probe_sets"]
        if isinstance(given, Mapping):
            for name in given:
                if name not in sets:
                    raise unknown_name(f"{run.path}: probe_labels: eval_set", name, sets)
        try:
            labels = labels_of(found, sets, len(run.seeds), shape)
        except WaterjarError as error:
            raise WaterjarError(f"{run.path}: {error}") from None
        check_labels(labels, run.attributes.get("classes") or (), f"{run.path}: probe_labels")
        if _LABEL in run.nodes and not np.array_equal(run.array(_LABEL), labels):
            raise _contradiction(run, "other labels of these samples (probe_samples/label)", "")
    return found


def _by_set(run: Run, given: object) -> dict[str, Any]:
    """Labels by eval set: (sample,), or (repeat, sample) where repeats see other samples."""
    sets: list[str] = run.attributes["probe_sets"]
    if isinstance(given, Mapping):
        return {str(name): _whole(f"probe_labels['{name}']", one).tolist() for name, one in given.items()}
    labels = _whole("probe_labels", given)
    if labels.ndim == 1 and len(sets) == 1:
        labels = labels[None]
    if labels.ndim not in (2, 3) or labels.shape[-2] != len(sets):
        raise WaterjarError(
            f"{run.path}: probe_labels has the shape {labels.shape}: expected (eval_set={len(sets)}, sample), or "
            f"(repeat, eval_set, sample), of the sets {', '.join(sets)}"
        )
    return {name: labels[..., place, :].tolist() for place, name in enumerate(sets)}


def _whole(where: str, given: object) -> NDArray[np.int64]:
    array = to_numpy(given, where)
    if array.dtype.kind not in "iu":
        raise WaterjarError(f"{where} is of type {array.dtype}: expected whole numbers, one for each sample")
    return array.astype(np.int64)


def _union(runs: Iterable[Run], key: str) -> list[str]:
    return list(dict.fromkeys(str(name) for run in runs for name in run.attributes[key]))


def _where(runs: Sequence[Run]) -> str:
    return str(runs[0].path) if len(runs) == 1 else f"{runs[0].path.parent} ({len(runs)} runs)" if runs else "no run"


def _contradiction(run: Run, recorded: str, new: object) -> WaterjarError:
    other = f", and not {brief(new)!r}" if new != "" else ""
    return WaterjarError(
        f"{run.path} has recorded {recorded}{other}: an annotation fills what is missing, it does not change what was "
        "recorded"
    )
