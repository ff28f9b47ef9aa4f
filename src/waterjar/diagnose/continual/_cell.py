"""All metrics of one cell, labelled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from waterjar.diagnose.continual._loading import load_cell, read_roots
from waterjar.diagnose.continual._measured import label
from waterjar.diagnose.continual._reading import read_curves
from waterjar.diagnose.continual._settings import Settings
from waterjar.diagnose.labelled import NOT_RECORDED, UNDEFINED, variable
from waterjar.diagnose.registry import Family


def measure_cell(runs: Sequence[Path], settings: Settings, family: Family) -> xr.Dataset | None:
    """Over (repeat, ...), from the directories of the cell's runs; None if none of them has a /performance."""
    roots = read_roots(runs)
    performance = load_cell(roots, "performance", settings.read)
    if performance is None:
        return None
    about_run = roots[runs[0]]["attributes"]
    classes = about_run.get("classes")
    expert = load_cell(roots, "expert", settings.read)
    curves = read_curves(performance, expert, len(classes) if classes else None, settings, str(runs[0]))
    found: dict[str, xr.Variable] = {}
    for declared in family.metrics.values():
        found |= label(declared, declared.compute(curves), curves.lacking, is_loss=curves.is_loss)
    repeats = len(curves.final)
    chance = np.broadcast_to(curves.chance, (repeats, len(curves.tasks)))
    unknown = np.where(np.isnan(chance), np.uint8(NOT_RECORDED if curves.chance_note else UNDEFINED), np.uint8(0))
    about = {"long_name": "chance that performance was corrected for", "units": "1"}
    found |= variable("chance", ("repeat", "eval_task"), chance, unknown, about)
    words = {
        "chance_note": (curves.chance_note, "why chance is not known, and what would help"),
        "tasks": (", ".join(about_run["tasks"][task] for task in curves.eval_sets), "tasks that averages are over"),
    }
    for name, (text, says) in words.items():
        found[name] = xr.Variable(("repeat",), np.full(repeats, text, object), {"long_name": says})
    about = {"long_name": "number of tasks that averages are over", "units": "1"}
    found["n_tasks"] = xr.Variable(("repeat",), np.full(repeats, len(curves.eval_sets)), about)
    tasks = np.asarray(curves.tasks)
    kept = {name: performance[name].variable for name in ("repeat", "seed", "directory")}
    labels = {
        "train_task": ("train_task", tasks, {"long_name": "task in training, by its place in the order"}),
        "eval_task": ("eval_task", tasks, {"long_name": "task evaluated, by its place in the order"}),
    }
    return xr.Dataset(found, {**kept, **labels}, {"eval_sets": ", ".join(curves.eval_sets.values())})
