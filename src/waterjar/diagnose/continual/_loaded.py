"""What is read of a cell, how a metric of tasks becomes one number, and what stands beside the metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.continual._feeds import OF_SEVERAL
from waterjar.diagnose.continual._reading import read_curves
from waterjar.diagnose.continual._settings import variable_read
from waterjar.diagnose.labelled import variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.registry import Direction, Metric
from waterjar.diagnose.result import CHANCE_UNKNOWN, ONE_TASK, RUN_ENDED, UNDEFINED
from waterjar.diagnose.settings import check_chance
from waterjar.diagnose.training_order import order_note, visit_labels, visit_names, visits_note
from waterjar.run.annotated import other_chance
from waterjar.run.schema import JOINT, REASON

_COORDINATES = ("step", "epoch", "train_task_index", "visit", "eval_set", "eval_task", "repeat", "seed")
_OTHER_WAY: dict[Direction, Direction] = {"higher": "lower", "lower": "higher", "zero": "zero", "none": "none"}


def load_group(unit: Unit, group: str, settings: Any) -> xr.Dataset | None:
    """The few arrays of a group that the family reads: curves are thin, but the groups they stand in need not be."""
    check_chance(settings.chance, len(unit.runs[0].attributes["tasks"]), str(unit.runs[0].path))
    read = variable_read(settings)
    return unit.load(group, {*_COORDINATES, read, read + REASON})


class Cell(Loaded):
    """The curves of one cell."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        performance = load_group(unit, "performance", settings)
        assert performance is not None  # a unit without it is none of this family
        about, where = unit.runs[0].attributes, str(unit.runs[0].path)
        expert = load_group(unit, "expert", settings)
        self.curves = read_curves(performance, expert, unit.chance, settings, where)
        self.task_names, self.seeds = list(about["tasks"]), unit.seeds
        visited = self.curves.tasks
        tasks = np.asarray(visit_labels(visited, len(self.task_names)))
        labels: dict[str, Any] = {
            "train_task": ("train_task", tasks, {"long_name": "task in training, by its place in tasks="}),
            "eval_task": ("eval_task", tasks, {"long_name": "task evaluated, by its place in tasks="}),
        }
        if len(set(visited)) < len(visited):
            names = visit_names([self.task_names[task] for task in visited], range(len(visited)))
            for dim, what in (("train_task", "visit in training"), ("eval_task", "visit whose task is evaluated")):
                labels[dim][2]["comment"] = "each further visit of a task adds the number of tasks"
                labels[dim.replace("task", "visit")] = (dim, np.array(names, object), {"long_name": what})
        super().__init__(unit, labels, {"eval_sets": ", ".join(self.curves.eval_sets.values())})

    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The curves, of all repeats at once."""
        yield self.curves, ()

    def attributes(self, metric: Metric) -> dict[str, Any]:
        """Where a metric of a loss differs from its declaration, which is that of an accuracy."""
        changed: dict[str, Any] = {}
        if self.curves.is_loss and metric.on_loss == "flipped":
            changed["direction"] = _OTHER_WAY[metric.direction]
        if self.curves.is_loss and metric.loss_name:
            changed["long_name"] = metric.loss_name
        if self.curves.is_loss and metric.loss_units:
            low = 0.0 if metric.range[0] == 0 else -np.inf
            changed |= {"units": metric.loss_units, "valid_min": low, "valid_max": np.inf}
        return changed

    def undefined(self, metric: Metric) -> int:
        """Of a loss there is nothing where only accuracies have it; of one task, nothing of what a later one does.

        A run that is still open may yet train another.
        """
        if self.curves.is_loss and metric.on_loss == "undefined":
            return UNDEFINED
        alone = len(set(self.curves.trained)) == 1 and not (self.curves.lacking == RUN_ENDED).any()
        return ONE_TASK if alone and metric.name in OF_SEVERAL else 0

    def summary(self, metric: Metric, table: Table) -> Variables:
        """The mean over what the definition covers, and what it leaves out.

        What is undefined there (both at chance, say) is left out and counted in `<name>_n_undefined`; anything else
        that is missing makes the mean missing, for the same reason. `<name>_n` counts what is there. Where some tasks
        of the run were never trained the mean is missing for that reason; values of single tasks and pairs stay.
        """
        if not metric.summary:
            return {}
        never = self.undefined(metric)
        lacking = np.where(never > 0, np.uint8(never), self.curves.lacking)
        covered = (table.counts > 0).any(0)
        flat, why = table.values[:, covered], table.reasons[:, covered]  # (repeat, what is covered)
        kept = why == 0
        missing = np.where(why == UNDEFINED, 0, why).max(-1, initial=0).astype(np.uint8)
        missing = np.where(lacking > 0, lacking, missing)
        count = kept.sum(-1)
        known = (count > 0) & (missing == 0)
        mean = np.where(known, np.where(kept, flat, 0.0).sum(-1) / np.maximum(count, 1), np.nan)
        reasons = np.where(known, 0, np.where(missing > 0, missing, UNDEFINED)).astype(np.uint8)
        found = variable(metric.summary, ("repeat",), mean, reasons, self.attributes(metric))
        words = {"n_undefined": "left out of its mean, being undefined", "n": "that are there, which its mean is over"}
        for end, number in (("n_undefined", (why == UNDEFINED).sum(-1)), ("n", count)):
            about = {"long_name": f"values of {metric.name} {words[end]}", "units": "1"}
            found[f"{metric.name}_{end}"] = xr.Variable(("repeat",), number, about)
        return found

    def _order_note(self) -> str:
        """What is to be said where the recorded training is not the declared one; else nothing."""
        names, curves = self.task_names, self.curves
        never = [task for task in range(len(names)) if task not in curves.trained]
        said = [order_note(curves.trained, names), visits_note(curves.trained, names)]
        if never and curves.trained:  # of joint training there is nothing to be said
            said.append(f"not trained on its own: {', '.join(names[task] for task in never)}")
            evaluated = [names[task] for task in never if curves.eval_sets.get(task)]
            if evaluated and not curves.is_loss:
                said.append(f"ACC and AAA count {', '.join(evaluated)} as evaluated")
        of_sets = {name: names[task] for task, name in curves.eval_sets.items() if name in names}
        swapped = [f"'{name}' is that of {task}" for name, task in of_sets.items() if name != task]
        if swapped:  # a recorder refuses it: it was annotated or imported so
            said.append(f"eval sets bear the names of other tasks: {', '.join(swapped)}")
        return "; ".join(part for part in said if part)

    def _early_note(self, repeat: int) -> str:
        """Which evaluations at the end of a phase were not made, so that an earlier one of that phase counts."""
        whole, said = self.curves.overall, []
        phases = visit_names([self.task_names[task] for task in self.curves.trained]) or [JOINT]
        sets = list(self.curves.eval_sets)
        for place, name in enumerate(phases):
            there = np.flatnonzero(np.isfinite(whole.epochs[place]))
            if len(there):
                gone = np.isnan(whole.curves[repeat, place, :, there[-1]]) & np.isfinite(whole.ends[repeat, place])
                tasks = ", ".join(self.task_names[sets[i]] for i in np.flatnonzero(gone))
                if tasks:
                    seed = f"in seed {self.seeds[repeat]} (the last evaluation there counts)"
                    said.append(f"not evaluated at the end of {name}: {tasks} {seed}")
        return "; ".join(said)

    def _chance_note(self) -> str:
        """Why chance is not known; where it is, that an annotation counts and not the classes."""
        if self.curves.chance_note or self.curves.settings.chance is not None or np.isnan(self.curves.chance).all():
            return self.curves.chance_note
        return other_chance({name: self.unit.told(name) for name in ("chance", "classes")})

    def close(self, found: Variables) -> Variables:
        """Chance, and which tasks averages are over."""
        curves, repeats = self.curves, len(self.curves.final)
        chance = np.broadcast_to(curves.chance, (repeats, len(curves.tasks)))
        unknown = np.where(np.isnan(chance), np.uint8(CHANCE_UNKNOWN if curves.chance_note else UNDEFINED), np.uint8(0))
        about = {"long_name": "chance that performance was corrected for", "units": "1"}
        made = variable("chance", ("repeat", "eval_task"), chance, unknown, about)
        words = {
            "chance_note": (self._chance_note(), "why chance is not known and what would help, or whose it is"),
            "order_note": (
                self._order_note(),
                "where tasks were not trained as declared: what counts",
            ),
            "tasks": (", ".join(self.task_names[task] for task in curves.eval_sets), "tasks that averages are over"),
        }
        for name, (text, says) in words.items():
            made[name] = xr.Variable(("repeat",), np.full(repeats, text, object), {"long_name": says})
        early = np.array([self._early_note(repeat) for repeat in range(repeats)], object)
        says = "which evaluations at the end of training on a task were not made"
        made["early_note"] = xr.Variable(("repeat",), early, {"long_name": says})
        about = {"long_name": "number of tasks that averages are over", "units": "1"}
        made["n_tasks"] = xr.Variable(("repeat",), np.full(repeats, len(curves.eval_sets)), about)
        return made
