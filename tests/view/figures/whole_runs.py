"""Runs with everything that a figure may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

import waterjar
from waterjar.diagnose.labelled import stamp
from waterjar.diagnose.registry import families
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.testing import robust_probes
from waterjar.testing.streams import COALITIONS, STREAMS, SmallStreams

SETS = {"t1_all": 0, "t2_all_normal": 1, "t2_shortcut_normal": 1, "t2_shortcut_masked": 1, "t2_validation": 1}
CENTRES = np.repeat(np.random.default_rng(3).normal(size=(3, 12)) * 5, 4, axis=0)


def whole_run(
    path: Path,
    learner: str,
    seed: int,
    *,
    scenario: str = "sequential",
    epochs: int = 4,
    value: float = 0.8,
    names: Sequence[str] = ("t1", "t2"),
) -> Path:
    """A run with everything a figure may ask for: accuracies and examples of five sets, costs, features, weights, the
    streams of a collective, probes of robustness.
    """
    rng = np.random.default_rng([seed, len(learner)])
    config = {"method": learner, "scenario": scenario, "data": "toys", "seed": seed}
    labels = np.tile(np.repeat([0, 1, 2], 4), (len(SETS), 1))
    streams = [f"{name} {names[0]}" if names[0] != "t1" else name for name in STREAMS]  # odd tasks, odd streams
    phases = names if scenario == "sequential" else names[1:]
    with waterjar.Recorder(
        path, config, seeds=[seed], eval_sets=SETS, tasks=list(names), classes=["x", "y", "z"], provenance=False,
        variables=robust_probes.VARIABLES,
        labels={"stream": streams, "coalition": COALITIONS, **robust_probes.probe_labels()},
    ) as recorder:  # fmt: skip
        recorder.once("probe_samples", label=labels[None])
        small = SmallStreams(seed, learner, labels)
        for task in phases:
            for epoch in range(epochs):
                risen = value * (task == names[1]) * epoch / max(1, epochs - 1) + 0.01 * rng.random()
                accuracy = {name: risen * (0.5 if "masked" in name else 1.0) for name in SETS}
                margins = {name: rng.normal(size=(1, 12)) + risen for name in SETS}
                recorder.log(
                    train_task=task,
                    epoch=epoch,
                    performance={"accuracy": accuracy, "macro_accuracy": accuracy},
                    examples={"margin": margins, "correct": {name: own > 0 for name, own in margins.items()}},
                    train={"patched_images": 5.0},
                    resources={"seconds": 1.0 + rng.random(), "flops": 1e9, "images": 10},
                    snapshot={
                        "features": {"late": np.abs(rng.normal(size=(len(SETS), 12, 12))) + CENTRES},
                        "weights": {"w": rng.normal(size=(4, 3))},
                        **streams_at(small, epoch, risen, 0.0 * value, ends=epoch in (0, epochs - 1)),
                    },
                )
        robust_probes.record_probes(recorder, rng, 0.0 * value)
    return path


def streams_at(
    small: SmallStreams, epoch: int, risen: float, gone: float, *, ends: bool
) -> dict[str, dict[str, np.ndarray]]:
    """What streams say, at the ends of a task alone: their metrics take the most time."""
    if not ends:
        return {}
    return {"streams": {name: array[None] for name, array in small.snapshot(epoch, risen, gone).items()}}


def measured(study: waterjar.Study, leave_out: Sequence[str] = ()) -> Diagnosis:
    """All families, geometry with made-up numbers: its own tests measure it, and here it would take the most time."""
    found = Diagnosis(study, {})
    for name in families():
        try:
            if name in ("geometry", *leave_out):
                raise WaterjarError("left out here, it takes long")
            found.results[name] = diagnose(study, only=[name]).results[name]
        except WaterjarError as error:
            found.passed_over[name] = str(error)
    if "plasticity" in found.results and "geometry" not in leave_out:
        found.results["geometry"] = made_up_geometry(found.results["plasticity"], study)
        del found.passed_over["geometry"]
    return found


def made_up_geometry(like: xr.Dataset, study: waterjar.Study) -> xr.Dataset:
    """A result of the geometry family over the cells, seeds, snapshots and layers of another one."""
    rng = np.random.default_rng(0)
    gone = np.isnan(like["dormant_units"].transpose("cell", "seed", "snapshot", "layer").values)
    dims = ("cell", "seed", "snapshot", "layer")
    names = ("capacity", "radius", "dimension", "center_alignment", "axis_alignment", "center_axis_alignment")
    found = {name: (dims, np.where(gone, np.nan, rng.random(gone.shape))) for name in names}
    simulated = found["capacity"][1] * 1.02
    simulated[:, :, ::2] = np.nan  # at every other snapshot
    for end, factor in (("", 1.0), ("_low", 0.9), ("_high", 1.1)):
        found[f"simulated_capacity{end}"] = (dims, simulated * factor)
    for name in list(found):
        values = found[name][1]
        found[f"{name}_reason"] = (dims, np.isnan(values).astype(np.uint8))  # not_recorded
        if not name.endswith(("_low", "_high")):
            found[f"{name}_final"] = (dims[:2], rng.random(gone.shape[:2]))
    coords = {name: like[name] for name in like.coords}
    family = families()["geometry"]
    made = xr.Dataset(found, coords)
    stamp(made, family, family.settings({}), study)
    return made
