"""What a run needs so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack, how_to_record
from waterjar.diagnose.rigidity.side import EVAL_SETS, REQUIRED
from waterjar.run.reader import Run


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """The evaluation sets with and without the shortcut, and a baseline beside the run."""
    sets = {**EVAL_SETS, **(settings.eval_sets or {})}
    absent = [role for role in REQUIRED if role != "validation" or settings.checkpoint == "best"]
    absent = [role for role in absent if sets[role] not in run.attributes["eval_sets"]]
    variable = settings.variable if f"performance/{settings.variable}" not in run.nodes else ""
    if absent or variable:
        last = run.attributes["tasks"][-1]
        names = ", ".join(f'"{sets[role]}": "{last}"' for role in absent)
        lines = [f"Recorder(..., eval_sets={{{names}, ...}})"] if absent else []
        lines += [how_to_record(f"performance/{variable}")] if variable else []
        yield Lack(
            "it compares a network on a last task with a shortcut, shown and masked, with one that learned that task "
            "alone",
            " and ".join(lines),
        )
        return
    cure = "measure it in a study with one (--baseline)"
    yield Lack("ad, pd and sfr_rel are differences to a baseline", cure, (), is_telling=False)
