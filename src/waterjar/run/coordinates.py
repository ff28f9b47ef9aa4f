"""Where a step stands: which task, which epoch, and that neither ever goes backwards."""

from __future__ import annotations

import math
import operator
import re
import reprlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from waterjar._version import NUMERICS_VERSION
from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.arrays import fitting
from waterjar.run.identity import identify, plain, text
from waterjar.run.schema import EVENT_COLUMNS, GROUPS, GROWING, JOINT, REASON, STEP_COORDINATES, Variable, variables_of

Progress = dict[str, Any]
"""The coordinates of the last complete step; {"step": -1} before the first."""


def describe(
    config: object,
    seeds: Sequence[int] | None = None,
    eval_sets: Sequence[str] | Mapping[str, int | str] = (),
    tasks: Sequence[str] | int = 1,
    classes: Sequence[str] | None = None,
    probe_sets: Sequence[str] | None = None,
    data_fingerprint: str | None = None,
    unhashed: Sequence[str] = (),
    eval_sizes: Mapping[str, int] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    variables: Mapping[str, Variable] | None = None,
    numerics: int = NUMERICS_VERSION,
    branch: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Check what a recorder is opened with, and reduce it to the plain data that stands in the run's root."""
    settings = {} if config is None else plain(config)
    if not isinstance(settings, dict):
        raise WaterjarError(f"config = {config!r}: expected a mapping of settings")
    numbers = _seeds(settings, seeds)
    names = [str(i) for i in range(whole("tasks", tasks))] if isinstance(tasks, int) else names_of("tasks", tasks)
    if data_fingerprint is not None:
        text("data_fingerprint", data_fingerprint)
    left_out = names_of("unhashed", unhashed)
    if not names or JOINT in names:
        raise WaterjarError(f"tasks={tasks!r}: expected at least one task, none of them called '{JOINT}'")
    sets = _eval_sets(eval_sets, names)
    probes = list(sets) if probe_sets is None else names_of("probe_sets", probe_sets)
    for name in probes:
        if name not in sets:
            raise unknown_name("probe_sets: eval_set", name, sets)
    run_id, cell_id = identify(
        settings, numbers, data_fingerprint, left_out, whole("numerics", numerics), branch=branch
    )
    return {
        "run_id": run_id,
        "cell_id": cell_id,
        "identity": {"unhashed": left_out, "numerics": whole("numerics", numerics)},
        "config": settings,
        "data_fingerprint": data_fingerprint,
        "seeds": numbers,
        "tasks": names,
        "eval_sets": sets,
        **({} if eval_sizes is None else {"eval_sizes": _eval_sizes(eval_sizes, sets)}),
        "probe_sets": probes,
        "classes": None if classes is None else names_of("classes", classes),
        **({} if labels is None else {"labels": _labels(labels, variables or {})}),
        **({} if branch is None else {"branch": dict(branch)}),
    }


def _eval_sets(given: Sequence[str] | Mapping[str, int | str], tasks: Sequence[str]) -> dict[str, int]:
    """The task of every eval set, by its place: as told, by name or place; of a list, the task of the same name.

    A set that is called like one task and told to be of another is refused: whose accuracy it has, nobody could say.
    """
    sets = names_of("eval_sets", given)
    if not isinstance(given, Mapping):
        return {name: tasks.index(name) if name in tasks else -1 for name in sets}
    found = {name: place_of_task(given[name], tasks, f"eval_sets['{name}']") for name in sets}
    for name, place in found.items():
        if place >= 0 and name in tasks and name != tasks[place]:
            raise WaterjarError(
                f"eval_sets['{name}'] belongs to task '{tasks[place]}', but bears the name of task '{name}': expected "
                f"eval_sets={{'{name}': '{name}', ...}}, or another name for the set, such as 'test_{tasks[place]}'"
            )
    return found


def place_of_task(task: object, tasks: Sequence[str], where: str) -> int:
    """The task that an eval set belongs to, by its place: told by name or place; -1 is none.

    >>> place_of_task("b", ["a", "b"], "eval_sets['test']"), place_of_task(-1, ["a", "b"], "eval_sets['test']")
    (1, -1)
    """
    if isinstance(task, str):
        if task not in tasks:
            raise unknown_name(f"{where}: task", task, tasks, "Declare tasks=[...] when opening")
        return list(tasks).index(task)
    place = whole(where, task)
    if not -1 <= place < len(tasks):
        raise WaterjarError(
            f"{where}={place}: a task from 0 to {len(tasks) - 1}, or -1 for none; its name works, too: "
            + ", ".join(f"'{name}'" for name in tasks[:3])
            + (" ..." if len(tasks) > 3 else "")
        )
    return place


def _labels(labels: object, variables: Mapping[str, Variable]) -> dict[str, list[str]]:
    """Names along dimensions that the run would only count: those of the schema, or of declared variables."""
    if not isinstance(labels, Mapping):
        raise WaterjarError(f"labels={brief(repr(labels))}: expected a mapping name of a dimension -> names along it")
    for dim in labels:
        if not isinstance(dim, str) or not _NAME.fullmatch(dim) or dim in _OURS:
            raise WaterjarError(f"labels[{dim!r}]: expected a dimension such as stream, layer or head, none of ours")
        every = [one for group in GROUPS.values() for one in group.values()]
        known = {name for one in (*every, *variables.values()) for name in one.dims} - _OURS
        if dim not in known:
            raise unknown_name("labels: dimension", dim, known, "Declare others with Recorder(variables=...)")
    return {dim: names_of(f"labels['{dim}']", names) for dim, names in labels.items()}


def _eval_sizes(sizes: object, sets: Mapping[str, int]) -> dict[str, int]:
    """How many samples evaluation sets have, of those that are told."""
    if not isinstance(sizes, Mapping):
        raise WaterjarError(f"eval_sizes={sizes!r}: expected a mapping name of an eval_set -> number of its samples")
    for name, size in sizes.items():
        if name not in sets:
            raise unknown_name("eval_sizes: eval_set", name, sets)
        if whole(f"eval_sizes['{name}']", size) < 0:
            raise WaterjarError(f"eval_sizes['{name}']={size}: expected a number of samples, from 0 on")
    return {str(name): int(size) for name, size in sizes.items()}


def _seeds(settings: dict[str, Any], seeds: Sequence[int] | None) -> list[int]:
    """One seed per repeat; without `seeds` those that the config names, else 0. The two must not disagree."""
    named = settings.get("seeds", settings.get("seed"))
    named = named if isinstance(named, list) or named is None else [named]
    if seeds is None:
        seeds = named if named is not None else [0]
    numbers = whole_numbers("seeds", seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise WaterjarError(f"seeds={numbers}: expected one different whole number per repeat")
    if named is not None and settings.get("seed") is not None and not set(numbers) <= set(named):
        raise WaterjarError(f"seeds={numbers}, but the config says {named}: expected the same")
    return numbers


def names_of(argument: str, values: object) -> list[str]:
    """Different names, as a list of texts."""
    names = [values] if isinstance(values, str) else _listed(argument, values, "names")
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise WaterjarError(f"{argument}={reprlib.repr(names)}: expected different, non-empty names")
    return list(plain(names, argument))


def whole_numbers(argument: str, values: object) -> list[int]:
    """One whole number per repeat, as a list."""
    return [whole(argument, value) for value in _listed(argument, values, "whole numbers, one per repeat")]


def _listed(argument: str, values: object, what: str) -> list[Any]:
    try:
        with fitting(argument):
            return list(values)  # type: ignore[call-overload, no-any-return]
    except TypeError as error:
        raise WaterjarError(f"{argument}={brief(repr(values))}: expected a list of {what}") from error


def whole(argument: str, value: Any) -> int:
    """A whole number, of Python or numpy, that an array of int64 holds."""
    try:
        number = 2**63 if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # arrays and tensors have an __index__ that may refuse
        number = 2**63
    if not -(2**63) <= number < 2**63:
        raise WaterjarError(f"{argument}: {brief(repr(value))} is not a whole number of at most 64 bits")
    return number


def flag(argument: str, value: object) -> bool:
    """Whether something is wished; an array of wishes is an error."""
    try:
        return bool(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise WaterjarError(f"{argument}={brief(repr(value))}: expected True or False") from error


def advance(
    last: Progress,
    tasks: Sequence[str],
    epoch: float,
    train_task: str | int | None,
    step: int | None,
    total_epoch: float | None,
    effective_epoch: float | None,
    visit: int | None = None,
) -> Progress:
    """The coordinates of the step after `last`; what is not given follows from `epoch` and the task.

    `effective_epoch` counts epochs of the LAST task: 0 before it. An epoch of joint training uses every
    sample of the last task once, so there it counts too. Another task begins another `visit`; that the same one is
    visited again at once has to be said.

    >>> advance({"step": -1}, ["a", "b"], 3, "a", None, None, None)["effective_epoch"]
    0.0
    """
    index = task_index(train_task, tasks)
    name = JOINT if index < 0 else tasks[index]
    counted = index > 0 and not isinstance(train_task, str) and name != str(index)
    if counted and "train_task" not in last:
        raise WaterjarError(
            f"train_task={index} at the first step: numbers of tasks start at 0, which is '{tasks[0]}', and this is "
            f"'{name}'. If it is trained first, say train_task='{name}'"
        )
    epoch = finite("epoch", epoch)
    if epoch < 0:
        raise WaterjarError(f"epoch={epoch}: it starts at 0, the evaluation before any training")
    visit = _visit(last, name, visit)
    same = last.get("visit") == visit
    if not same and total_epoch is None and 1 < last.get("total_epoch", 0.0) == epoch - 1:
        raise WaterjarError(
            f"epoch={epoch:g} of task '{name}' goes on where the task before ended: epoch counts within the task, from "
            "1 again (total_epoch follows). If this is its first evaluation after so many epochs, give total_epoch, too"
        )
    if total_epoch is None:  # epochs of a new task count on from where the one before ended
        total_epoch = epoch + (last["total_epoch"] - last["epoch"] if same else last.get("total_epoch", 0.0))
    if effective_epoch is None:  # stands still while other tasks than the last one are trained
        effective_epoch = before = last.get("effective_epoch", 0.0)
        if index in (-1, len(tasks) - 1):
            effective_epoch = epoch + (before - last["epoch"] if same else before)
    found = {
        "step": next_step(last, step),
        "train_task": name,
        "train_task_index": index,
        "visit": visit,
        "epoch": epoch,
        "total_epoch": finite("total_epoch", total_epoch),
        "effective_epoch": finite("effective_epoch", effective_epoch),
    }
    for key in (*(("epoch",) if same else ()), "total_epoch", "effective_epoch"):
        if found[key] < last.get(key, 0.0):
            before = f"it was {last[key]} at step {last['step']}" if key in last else "it starts at 0"
            again = f". To train {name} once more, say visit={visit + 1}" if key == "epoch" else ""
            raise WaterjarError(f"{key}={found[key]} goes backwards: {before}{again}")
    return found


def next_step(last: Progress, step: int | None) -> int:
    """The label of the step after `last`: the next one, or a given one behind it."""
    label = int(last["step"] + 1) if step is None else whole("step", step)
    if label <= last["step"]:
        raise WaterjarError(
            f"step={label} goes backwards: the last one is {last['step']}, {last['step'] + 1} would be next"
        )
    return label


def _visit(last: Progress, task: str, given: int | None) -> int:
    """The stretch of training that a step belongs to: that of the step before, or the next one."""
    before = last.get("visit", -1)
    next_one = last.get("train_task") != task
    if given is None:
        return int(before + next_one)
    visit = whole("visit", given)
    allowed = (before + 1,) if next_one else (before, before + 1)
    if visit not in allowed:
        raise WaterjarError(f"visit={visit}: expected {' or '.join(map(str, allowed))}, visits are counted from 0 on")
    return visit


def is_number(value: object) -> bool:
    """Whether what a file says is a number that a float holds."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def is_progress(value: Mapping[str, object]) -> bool:
    """Whether a run can go on from these coordinates: all of them are there, unless no step is."""
    step, index = value.get("step"), value.get("train_task_index")
    if step == -1:
        return True
    numbers = (value.get(key) for key in ("epoch", "total_epoch", "effective_epoch"))
    is_whole = all(type(n) is int and -1 <= n < 2**63 for n in (step, index, value.get("visit")))
    return is_whole and isinstance(value.get("train_task"), str) and all(map(is_number, numbers))


def task_index(train_task: str | int | None, tasks: Sequence[str]) -> int:
    """Position of a task in the order of training; -1 for joint training."""
    if train_task is None:
        if len(tasks) > 1:
            raise WaterjarError(f"train_task is missing: the run has {len(tasks)} tasks, {list(tasks)}")
        return 0
    if isinstance(train_task, str):
        if train_task == JOINT:
            return -1
        if train_task not in tasks:
            raise unknown_name("train_task", train_task, [*tasks, JOINT], "Declare tasks=[...] when opening")
        return list(tasks).index(train_task)
    index = whole("train_task", train_task)
    if not 0 <= index < len(tasks):
        raise WaterjarError(f"train_task={index} is out of range: the run has {len(tasks)} tasks, counted from 0")
    return index


def finite(name: str, value: object) -> float:
    """A coordinate as a float; NaN and infinity have no place on an axis."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise WaterjarError(f"{name}={value!r}: expected a number") from error
    if not math.isfinite(number):
        raise WaterjarError(f"{name}={number}: a coordinate must be a finite number")
    return number


def check_variables(variables: object) -> dict[str, Variable]:
    """Refuse declared variables whose names would collide with what the schema keeps for itself."""
    if not isinstance(variables, Mapping):
        raise WaterjarError(f"variables={variables!r}: expected a mapping 'group/name' -> Variable")
    for key, variable in variables.items():
        group, _, name = str(key).rpartition("/")
        if not isinstance(variable, Variable):
            raise WaterjarError(f"variables['{key}'] is {type(variable).__name__}; expected a Variable")
        top, below = group.partition("/")[::2]
        if below and top != "probes":
            raise WaterjarError(f"variables['{key}']: '{group}' is no group for a variable, but probes/<name> is")
        layer_name(below or "probe", "probe")
        known = variables_of(group).get(name)
        if known is not None and known.dims != variable.dims:
            raise WaterjarError(
                f"variables['{key}'] has the dimensions {variable.dims}; in the schema it has {known.dims}"
            )
        check_name(name, f"variables['{key}']", variable.dims)
    return dict(variables)


NODE = "zarr.json"
"""The file that every group and array of a run has."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LABELS = ("eval_set", "eval_task", "repeat", "seed", "class", "layer_start", "layer_stop", "layer_shape", "example")
_OURS = {*STEP_COORDINATES, *GROWING, *EVENT_COLUMNS, *_LABELS}


def check_name(name: object, where: str, dims: Sequence[str] = ()) -> str:
    """The name of a variable: one that the schema does not keep for itself."""
    taken = {*_OURS, "layer", *dims}
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in taken or name.endswith(REASON):
        raise WaterjarError(f"{where}: {name!r} is no name for a variable: letters, digits, _ (ASCII); none of ours")
    return name


def layer_name(name: object, what: str = "layer") -> str:
    """A layer, probe or method becomes a folder of the run: ASCII letters, digits, dot, dash and underscore."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", name) or name.startswith("__"):
        raise WaterjarError(f"{what} {name!r}: expected letters, digits, '.', '-', '_' (ASCII), such as 'layer4.1'")
    if name.lower() == NODE:  # also on disks for which ZARR.JSON is the same
        raise WaterjarError(f"{what} {name!r} is not a name for a {what}: files of the run are called so")
    return name
