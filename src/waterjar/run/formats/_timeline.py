"""The performance of one seed, as it stands in a table: where it was evaluated, on what, and what came out.

A table of the seven columns that the field passes around knows no tasks: `seed_form` is what it can hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waterjar.run.coordinates import advance, describe
from waterjar.run.reader import Run
from waterjar.run.recorder import Recorder
from waterjar.run.schema import REASONS, missing
from waterjar.run.visits import VISIT, count_visits, visits_by_step

SPLITS = (
    "t1_all",
    "t2_all_normal",
    "t2_shortcut_normal",
    "t2_shortcut_masked",
    "t2_nonshortcut_normal",
    "t2_validation",
    "t2_shortcut_clean",
    "t2_shortcut_random_mask",
    "t2_nonshortcut_masked",
    "t2_nonshortcut_patched",
)
"""The evaluation sets of the Einstellung experiment, which a table without tasks tells apart by their names."""

MEASURES = {
    "acc": "accuracy",
    "top5": "top5_accuracy",
    "loss": "loss",
    "macro_acc": "macro_accuracy",
    "task_acc": "task_accuracy",
    "task_macro_acc": "task_macro_accuracy",
}
"""Column -> variable; those per class have no place in a table of one line per evaluation."""

ABSENT = REASONS[1]
"""The reason that an empty cell stands for."""

Step = tuple[int, str, int, float, float, float]
"""Its number, the task in training, the visit of it, its epochs, epochs since the start, epochs of the last task."""
Value = float | str
"""A number, or the reason why there is none."""


@dataclass(frozen=True)
class Timeline:
    """One seed's evaluations. `cells` are (step, split, column) -> value; what was not recorded is not in it."""

    tasks: tuple[str, ...]
    sets: dict[str, int]
    steps: tuple[Step, ...]
    cells: dict[tuple[int, str, str], Value]
    sizes: dict[str, int] = field(default_factory=dict)
    """Split -> how many samples it has, of those that are known."""
    classes: tuple[str, ...] = ()
    """All that compete; none where they are not known."""

    def check(self, config: Mapping[str, object], seed: int) -> None:
        """Refuse what `record` would refuse (names, steps that go backwards), before anything is written."""
        describe(config, [seed], self.sets, self.tasks, self.classes, None, None, (), self.sizes)
        last: Any = {"step": -1}
        for step, task, visit, epoch, total, effective in self.steps:
            last = advance(last, self.tasks, epoch, task, step, total, effective, visit)

    @property
    def columns(self) -> list[str]:
        """The measures that have a value, in their order."""
        used = {column for _, _, column in self.cells}
        return [column for column in MEASURES if column in used]

    @property
    def tells_visits(self) -> bool:
        """Whether visits follow from the tasks in training, so that nobody need say them."""
        counted = count_visits([step[1] for step in self.steps])
        return all(step[2] == visit for step, visit in zip(self.steps, counted.tolist(), strict=True))

    def record(self, folder: Path, config: Mapping[str, object], seed: int) -> None:
        """Write a sealed run."""
        columns = self.columns or ["acc"]
        with Recorder(
            folder,
            config,
            seeds=[seed],
            eval_sets=self.sets,
            tasks=self.tasks,
            classes=self.classes or None,
            eval_sizes=self.sizes or None,
            summary=False,
        ) as recorder:
            for step, task, visit, epoch, total, effective in self.steps:
                performance = {
                    MEASURES[column]: {split: self._logged(step, split, column) for split in self.sets}
                    for column in columns
                }
                recorder.log(step=step, train_task=task, visit=visit, epoch=epoch, total_epoch=total,
                             effective_epoch=effective, performance=performance)  # fmt: skip

    def _logged(self, step: int, split: str, column: str) -> object:
        value = self.cells.get((step, split, column), ABSENT)
        return missing(value) if isinstance(value, str) else value


def timelines(run: Run) -> Iterator[tuple[int, Timeline]]:
    """seed, timeline of every repeat of a run; none if it has evaluated nothing."""
    if "performance" not in run.groups:
        return
    data = run.load("performance")
    known = visits_by_step(run)
    visits = [known[step][0] for step in data["step"].values.tolist()]
    data[VISIT] = "step", count_visits(visits)  # those without an evaluation are not in the table
    names = ("step", "train_task", VISIT, "epoch", "total_epoch", "effective_epoch")
    steps: Any = tuple(zip(*(data[name].values.tolist() for name in names), strict=True))
    splits = [str(split) for split in data["eval_set"].values]
    sets = dict(zip(splits, data["eval_task"].values.tolist(), strict=True))
    for repeat, seed in enumerate(run.seeds if steps else ()):
        cells: dict[tuple[int, str, str], Value] = {}
        for column, variable in MEASURES.items():
            if variable not in data:
                continue
            values = data[variable].values[..., repeat].tolist()
            reasons = data[f"{variable}_reason"].values[..., repeat].tolist() if f"{variable}_reason" in data else None
            for i, step in enumerate(steps):
                for j, split in enumerate(splits):
                    value: Value = values[i][j]
                    if math.isnan(values[i][j]):
                        value = REASONS[reasons[i][j]] if reasons is not None and reasons[i][j] else ABSENT
                    if value != ABSENT:
                        cells[step[0], split, column] = value
        about = run.attributes
        sizes, classes = dict(about.get("eval_sizes") or {}), tuple(about.get("classes") or ())
        yield seed, Timeline(tuple(about["tasks"]), sets, steps, cells, sizes, classes)


def seed_form(lines: Mapping[tuple[float, str], Mapping[str, Value]]) -> Timeline:
    """The run behind a table that has no tasks: (epoch_eff, split) -> column -> value."""
    present = dict.fromkeys(split for _, split in lines)
    order = [*(split for split in SPLITS if split in present), *(split for split in present if split not in SPLITS)]
    sets = {split: 0 if split.startswith("t1_") else 1 if split in SPLITS else -1 for split in order}
    tasks = ("t1", "t2") if set(sets.values()) & {0, 1} else ("t1",)
    number = {epoch: step for step, epoch in enumerate(sorted({epoch for epoch, _ in lines}))}
    steps = tuple((step, tasks[-1], 0, epoch, epoch, epoch) for epoch, step in number.items())
    cells = {
        (number[epoch], split, column): value
        for (epoch, split), values in lines.items()
        for column, value in values.items()
    }
    return Timeline(tasks, sets, steps, cells)
