"""What a run recorded as NaN, and which evaluation sets it passed over: told where a run is closed, and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.run.join import codes_of
from waterjar.run.reader import Run
from waterjar.run.schema import JOINT, REASON, REASONS
from waterjar.run.shown import visible

_GROUPS = ("performance", "expert", "train")
_NOT_RECORDED, _NOT_A_NUMBER = map(REASONS.index, ("not_recorded", "not_a_number"))
_MOST = 4
"""Lines, and names in a line; of what is more, how many."""

Steps = NDArray[np.bool_]


def gaps(run: Run) -> list[str]:
    """A line for every loss or accuracy with NaN, and for every evaluation set that lacks some of the evaluations.

    The first such epoch is named, and how many there are. A step at which no set was evaluated is no gap, and a set
    that lacks several variables at the same steps has one line.
    """
    broken, lacking = [], dict[tuple[str, str, bytes], tuple[Steps, Steps, list[str]]]()
    for group, name, dims, codes in _courses(run):
        wrong = codes == _NOT_A_NUMBER
        if wrong.any():
            at = np.flatnonzero(wrong.any(tuple(range(1, wrong.ndim))))
            sets = _names(run, wrong) if "eval_set" in dims else []
            of_sets = f" of {_few(sets)}" if sets else ""
            broken.append(f"{group}/{name}{of_sets} is NaN {_when(run, group, at, len(wrong))}")
        if "eval_set" not in dims:
            continue
        absent = (codes == _NOT_RECORDED).any(tuple(range(2, codes.ndim)))  # (step, eval_set)
        made = ~absent.all(1)
        for i, eval_set in enumerate(run.attributes["eval_sets"]):
            steps = absent[:, i] & made
            if steps.any():
                key = group, eval_set, steps.tobytes()
                lacking.setdefault(key, (steps, made, []))[2].append(f"{group}/{name}")
    missed = [
        f"eval set {eval_set} has no {_few(names)} {_when(run, group, np.flatnonzero(steps), int(made.sum()))}"
        for (group, eval_set, _), (steps, made, names) in lacking.items()
    ]
    return [visible(line) for lines in (broken, missed) for line in _bounded(lines)]


def _courses(run: Run) -> Iterator[tuple[str, str, list[str], NDArray[np.uint8]]]:
    """Group, name, dimensions and codes of losses and accuracies, the step and then the evaluation set in front."""
    for key, node in run.nodes.items():
        group, _, name = key.partition("/")
        dims = node.get("dimension_names") or []
        told = group in _GROUPS and name.endswith(("loss", "accuracy")) and not name.endswith(REASON)
        if not told or node["node_type"] != "array" or "step" not in dims or 0 in node["shape"]:
            continue
        reasons = run.array(key + REASON) if key + REASON in run.nodes else None
        codes = codes_of(run.array(key), reasons)
        front = [dim for dim in ("step", "eval_set") if dim in dims]
        yield group, name, dims, np.moveaxis(codes, [dims.index(dim) for dim in front], range(len(front)))


def _names(run: Run, wrong: Steps) -> list[str]:
    """The evaluation sets in which something is wrong."""
    some = np.atleast_1d(wrong.any((0, *range(2, wrong.ndim))))
    return [name for name, one in zip(run.attributes["eval_sets"], some, strict=True) if one]


def _when(run: Run, group: str, at: NDArray[Any], steps: int) -> str:
    """At which epoch first, and at how many of all."""
    tasks = {-1: JOINT, **dict(enumerate(map(str, run.attributes["tasks"])))}
    first = int(run.array(f"{group}/train_task_index")[at[0]])
    of_task = f" of {tasks.get(first, f'task {first}')}" if len(tasks) > 2 or first < 0 else ""
    epoch = f"{run.array(f'{group}/epoch')[at[0]]:g}"
    only = f"at epoch {epoch}{of_task}" if len(at) == 1 else f"first at epoch {epoch}{of_task}"
    return f"{only}, {len(at)} of {steps} times"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _bounded(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[: _MOST - 1], f"... and {len(lines) - _MOST + 1} more like these"]
