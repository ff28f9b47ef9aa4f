"""What a run needs so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack, how_to_record
from waterjar.diagnose.registry import find_family
from waterjar.diagnose.rigidity.side import EVAL_SETS, REQUIRED, SHAPE
from waterjar.run.reader import Run


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """The evaluation sets with and without the shortcut, and a baseline beside the run."""
    sets = {**EVAL_SETS, **(settings.eval_sets or {})}
    absent = [role for role in REQUIRED if role != "validation" or settings.checkpoint == "best"]
    absent = [role for role in absent if sets[role] not in run.attributes["eval_sets"]]
    variable = settings.variable if f"performance/{settings.variable}" not in run.nodes else ""
    if absent or variable:
        last = run.attributes["tasks"][-1]
        told = ", ".join(f'"{sets[role]}": "{last}"' for role in absent)
        lines = [f"Recorder(..., eval_sets={{{told}, ...}})"] if absent else []
        lines += [how_to_record(f"performance/{variable}")] if variable else []
        yield Lack(SHAPE, " and ".join(lines))
        return
    without: dict[tuple[str, ...], list[str]] = {}
    role_of = {name: role for role, name in EVAL_SETS.items()}
    for metric in find_family("rigidity").metrics.values():
        names = [need.partition("[")[2].rstrip("]") for need in metric.needs]
        asked = [sets[role_of[name]] for name in names if name in role_of]
        absent_of = tuple(name for name in asked if name not in run.attributes["eval_sets"])
        if absent_of and not metric.optional:
            without.setdefault(absent_of, []).append(metric.name)
    for controls, named in without.items():
        code = ", ".join(f'"{control}": "{run.attributes["tasks"][-1]}"' for control in controls)
        what = f"no eval set {', '.join(controls)}"
        yield Lack(what, f"Recorder(..., eval_sets={{{code}, ...}})", tuple(named), is_telling=False)
    cure = "measure it in a study with one (--baseline)"
    yield Lack("ad, pd and sfr_rel are differences to a baseline", cure, (), is_telling=False)
