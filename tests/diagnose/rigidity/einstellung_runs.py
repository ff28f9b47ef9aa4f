"""Small recorded Einstellung studies whose numbers are chosen by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import waterjar
from waterjar.diagnose import rigidity
from waterjar.diagnose.measuring import Unit, measure_unit

SETS = {
    "t1_all": 0,
    "t2_shortcut_normal": 1,
    "t2_shortcut_masked": 1,
    "t2_nonshortcut_normal": 1,
    "t2_validation": 1,
    "t2_shortcut_clean": 1,
    "t2_shortcut_random_mask": 1,
    "t2_nonshortcut_masked": 1,
    "t2_nonshortcut_patched": 1,
}
Curve = Sequence[Any]


def config(scenario: str, learner: str, **changes: Any) -> dict[str, Any]:
    return {
        "method": learner if scenario == "sequential" else scenario,
        "scenario": scenario,
        "learner": learner,
        "learner_settings": {"lr": 0.01},
        "backbone": "small_cnn",
        "training": {"epochs_t1": 2, "epochs_t2": 4, "batch_size": 8},
        "shortcut": {"rate": 0.5, "eval_rate": 1.0},
        **changes,
    }


def write_run(
    folder: Path,
    scenario: str,
    learner: str,
    seed: int,
    curves: Mapping[str, Curve],
    *,
    patched: float | None = 7.0,
    sets: Mapping[str, int] = SETS,
    variables: Sequence[str] = ("macro_accuracy", "accuracy"),
    fingerprint: str | None = None,
    **changes: Any,
) -> Path:
    """A sealed run. `curves` gives values from epoch 0 of T2 on, by eval set; sets not given are 0.5 throughout.

    A sequential run has three evaluations of T1 before, with accuracies of 0.99 everywhere: whoever counts them
    as T2 finds the threshold reached at once.
    """
    length = len(curves["t2_shortcut_normal"])
    path = folder / f"{scenario}-{learner}-{seed}-{len(list(folder.glob('*')))}"
    settings = {**config(scenario, learner, **changes), "seed": seed}
    about: dict[str, Any] = {"eval_sets": sets, "tasks": ["t1", "t2"], "data_fingerprint": fingerprint}
    with waterjar.Recorder(path, settings, seeds=[seed], provenance=False, **about) as r:
        if scenario == "sequential":
            for epoch in range(3):
                r.log(train_task="t1", epoch=epoch, performance={v: dict.fromkeys(sets, 0.99) for v in variables})
        for epoch in range(length):
            row = {name: curves[name][epoch] if name in curves else 0.5 for name in sets}
            counted = patched is not None and epoch > 0
            r.log(
                train_task="joint" if scenario == "interleaved" else "t2",
                epoch=epoch,
                performance=dict.fromkeys(variables, row),
                train={"patched_images": patched} if counted else None,
            )
    return path


def in_memory(curves: Mapping[str, np.ndarray[Any, Any]], seeds: Sequence[int], epochs: Sequence[float]) -> xr.Dataset:
    """A cell's `performance` without a file; `curves` are (epoch, repeat)."""
    values = np.stack([np.asarray(curves[name], float) for name in curves], axis=1)
    steps = np.arange(len(epochs))
    return xr.Dataset(
        {"macro_accuracy": (("step", "eval_set", "repeat"), values)},
        {
            "step": steps,
            "effective_epoch": ("step", np.asarray(epochs, float)),
            "train_task": ("step", np.array(["t2"] * len(epochs), object)),
            "train_task_index": ("step", np.ones(len(epochs), int)),
            "eval_set": list(curves),
            "seed": ("repeat", list(seeds)),
        },
    )


@dataclass(frozen=True)
class StandIn:
    """What a family asks of a run, beside what it has recorded."""

    seeds: list[int]
    config: dict[str, Any] = field(default_factory=dict)
    path: Path = Path("in memory")
    attributes: dict[str, Any] = field(default_factory=dict)


def measured_in_memory(
    own: xr.Dataset, other: xr.Dataset | None, names: tuple[str, str], **settings: Any
) -> xr.Dataset:
    """What the family measures of a cell's `performance`, beside that of a baseline or of none."""

    def unit(dataset: xr.Dataset, name: str, baseline: Unit | None = None) -> Unit:
        run: Any = StandIn(dataset["seed"].values.tolist())
        return Unit(name, (run,), name, baseline=baseline, kept={"performance": dataset, "events": None, "train": None})

    base = None if other is None else unit(other, names[1])
    return measure_unit(rigidity.FAMILY, unit(own, names[0], base), rigidity.FAMILY.settings(settings))
