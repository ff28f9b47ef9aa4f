"""Which eval set speaks for a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from waterjar.errors import WaterjarError, setting_as, unknown_name


def choose_eval_sets(
    belongs: Mapping[str, int], trained: Collection[int], wanted: Sequence[str] | None, where: str, family: str
) -> dict[int, str]:
    """Task -> its eval set: the one that is wanted; else the task's only one; else the one of all its samples.

    `belongs` has the task of every set, -1 for none; `family` is whose setting `eval_sets` an error speaks of.
    "All its samples" goes by name: the only one that ends in `_all`, or else in `_all_normal`. Every trained task is
    there, with an empty name where it has no eval set, and every other task that has one (that is wanted).
    """
    for name in wanted or ():
        if name not in belongs:
            raise unknown_name(f"{where}: eval_set", name, belongs)
    chosen: dict[int, str] = {}
    for task in sorted({*trained, *(t for t in belongs.values() if t >= 0)}):
        own = [name for name, t in belongs.items() if t == task and (wanted is None or name in wanted)]
        if not own and task not in trained:
            continue
        if wanted is not None and len(own) != 1:
            raise WaterjarError(
                f"{where}: eval_sets {list(wanted)} has {len(own)} sets of task {task}: expected one. "
                f"Those of the task: {', '.join(repr(n) for n, t in belongs.items() if t == task) or 'none'}"
            )
        for ending in ("_all", "_all_normal"):
            if len(own) > 1:
                own = [name for name in own if name.endswith(ending)] or own
        if len(own) > 1:
            raise WaterjarError(
                f"{where}: task {task} has several eval sets, {', '.join(map(repr, own))}: "
                f"say which, one per task, with {setting_as(f'{family}.eval_sets', '[...]')}"
            )
        chosen[task] = own[0] if own else ""
    return chosen
