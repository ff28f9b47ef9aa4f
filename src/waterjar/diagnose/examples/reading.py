"""The examples of one run: which are looked at, when each counts, and what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.eval_sets import choose_eval_sets
from waterjar.diagnose.examples.inputs import Answers, Bools, History
from waterjar.diagnose.result import NOT_A_NUMBER, NOT_RECORDED, Codes, Floats
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run, read_group
from waterjar.run.schema import ABSENT, TRAIN

_STEPS = ("step", "epoch", "total_epoch", "train_task_index")
_STATIC = ("label", "sample_index", "task")


def chosen_sets(run: Run, wanted: Sequence[str] | None) -> list[str]:
    """The sets that are looked at: those wanted; else one for every task, as continual learning has it, and `train`."""
    recorded = list(run.attributes["example_sets"])
    for name in wanted or ():
        if name not in recorded:
            raise unknown_name(f"{run.path}: set of examples", name, recorded)
    if wanted is not None:
        return [name for name in recorded if name in wanted]
    tasks = run.attributes["eval_sets"]
    belongs = {name: int(tasks[name]) for name in recorded if name in tasks}
    of_tasks = choose_eval_sets(belongs, (), None, str(run.path), "examples").values()
    return [name for name in recorded if name in (*(of_tasks or belongs), TRAIN)]


class RunExamples:
    """The chosen examples of one run. Histories are read when asked for, 3 bytes an example, repeat and step."""

    def __init__(self, run: Run, settings: Any) -> None:
        self.run = run
        arrays, _ = read_group(run, "examples", {*_STEPS, *_STATIC, "eval_set", "sample"})
        if "examples/correct" not in run.nodes or not len(arrays.get("step", ((), ()))[1]):
            raise WaterjarError(f"{run.path} has recorded no answers to examples: expected examples/correct")
        self.sets = chosen_sets(run, settings.eval_sets)
        every = arrays["eval_set"][1].astype(str)
        self.places: NDArray[np.int64] = np.flatnonzero(np.isin(every, self.sets))
        self.set_names = every[self.places]
        self.samples: NDArray[np.int64] = arrays["sample"][1][self.places]
        self.static = {name: arrays[name][1][:, self.places] for name in _STATIC if name in arrays}
        self.steps, self._epoch, self._total, self._index = (arrays[name][1] for name in _STEPS)
        self._since = settings.since
        others = [name for name in self.sets if name != TRAIN]
        self.judged: Bools = np.isin(self.set_names, others or self.sets)
        self.has_margin = "examples/margin" in run.nodes
        self._read: dict[str, NDArray[Any]] = {}
        self._rows: dict[tuple[str, int], NDArray[Any]] = {}

    @property
    def labels(self) -> NDArray[Any]:
        """(example,): a name for each, the same in every run."""
        names = zip(self.set_names.tolist(), self.samples.tolist(), strict=True)
        return np.array([f"{name}/{sample}" for name, sample in names], object)

    def tasks(self, repeat: int) -> NDArray[np.int64]:
        """(example,): position of its own task; that of its evaluation set where the run says no more, -1 for none."""
        if "task" in self.static:
            found: NDArray[np.int64] = self.static["task"][repeat]
            return found
        known = self.run.attributes["eval_sets"]
        alone = 0 if len(self.run.attributes["tasks"]) == 1 else -1
        return np.array([int(known.get(name, alone)) for name in self.set_names.tolist()], np.int64)

    def _of_task(self, task: int) -> tuple[Bools, Bools, Floats]:
        """(step,) each: whether an evaluation counts for a task, whether the task is in training, epochs of it so far.

        Where all evaluations count, also those before the task, epochs are those of the run.
        Joint training trains every task, and whatever is trained trains an example of none.
        """
        own = (self._index == task) | (self._index < 0) if task >= 0 else np.ones(len(self._index), np.bool_)
        training = own & (self._epoch > 0)  # at epoch 0 nothing of the task was trained yet
        begun = np.logical_or.accumulate(own if self._since == "start" else training)
        if self._since == "all":
            return np.ones(len(own), np.bool_), training, self._total
        first = int(np.flatnonzero(own)[0]) if own.any() else -1
        before = self._total[first] - self._epoch[first] if first >= 0 else np.nan
        return begun, begun & training, self._total - before

    def history(self, repeat: int, ended: int) -> History:
        """One repeat; `ended` says why its run tells nothing, as a code."""
        tasks, which = np.unique(self.tasks(repeat), return_inverse=True)
        counts, training, epochs = (np.stack(part)[which].T for part in zip(*map(self._of_task, tasks), strict=True))
        margin = self._array("margin")[:, repeat][:, self.places] if self.has_margin else None
        return History(
            correct=self._array("correct")[:, repeat][:, self.places],
            margin=margin,
            counts=counts,
            in_training=training,
            epochs=epochs,
            eval_sets=self.sets,
            set_of=np.array([self.sets.index(name) for name in self.set_names.tolist()], np.int64),
            judged=self.judged,
            ended=ended,
        )

    @property
    def by_set(self) -> list[Bools]:
        """(eval_set,): which examples are of each set."""
        return [self.set_names == name for name in self.sets]

    def trained(self, repeat: int) -> Bools:
        """(example,): whether its own task was trained at all."""
        return self._any(repeat, 1)

    def counted(self, repeat: int) -> Bools:
        """(example,): whether any evaluation counts for it."""
        return self._any(repeat, 0)

    def _any(self, repeat: int, part: int) -> Bools:
        tasks, which = np.unique(self.tasks(repeat), return_inverse=True)
        found: Bools = np.array([bool(self._of_task(int(task))[part].any()) for task in tasks])[which]
        return found

    def last(self, repeat: int) -> tuple[Answers, Codes]:
        """(example,): the answers at the last evaluation, and why one is missing."""
        row = len(self.steps) - 1
        right = self._row("correct", row)[repeat, self.places]
        codes = np.where(right == ABSENT, NOT_RECORDED, 0)
        if self.has_margin:
            broken = np.isnan(self._row("margin", row)[repeat, self.places]) & (right != ABSENT)
            codes = np.where(broken, NOT_A_NUMBER, codes)
        return right, codes.astype(np.uint8)

    def same_examples(self, repeat: int) -> tuple[bytes, ...]:
        """Equal where two repeats were asked the same examples in the same order, as far as the runs tell."""
        known = [self.static[name][repeat].tobytes() for name in ("label", "sample_index") if name in self.static]
        return ("\n".join(self.labels.tolist()).encode(), *known)

    def forget(self) -> None:
        """Give the memory of histories back."""
        self._read.clear()

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._read:
            self._read[name] = self.run.array(f"examples/{name}")
        return self._read[name]

    def _row(self, name: str, row: int) -> NDArray[Any]:
        """(repeat, example) at a step; only the chunks that hold it are read."""
        key = (name, row)
        if key not in self._rows:
            self._rows[key] = self.run.row(f"examples/{name}", row)
        return self._rows[key]
