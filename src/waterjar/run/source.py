"""A probe of a training that is over is a run of its own, which names the sealed run that it looked into."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.coordinates import Progress, finite, next_step, task_index
from waterjar.run.reader import Run, open_run
from waterjar.run.schema import JOINT, STEP_COORDINATES
from waterjar.run.visits import VISIT, visits_by_step

Steps = dict[int, Progress]
"""Label of a step -> its coordinates."""


def source_of(given: str | os.PathLike[str] | Run, identity: dict[str, Any]) -> dict[str, str]:
    """What a probe run keeps of its source. Its repeats are those of the source, and it is not the source itself."""
    run = given if isinstance(given, Run) else open_run(given)
    if run.root_hash is None:
        raise WaterjarError(f"source={run.path} is {run.status}: expected a sealed run, which changes no more")
    if run.attributes.get("source"):
        raise WaterjarError(f"source={run.path} is a probe run itself: expected the run that it looked into")
    if run.seeds != identity["seeds"]:
        raise WaterjarError(f"seeds={identity['seeds']}, but the source has {run.seeds}: expected the same")
    if run.run_id == identity["run_id"]:
        raise WaterjarError("config is that of the source: expected one of its own, which names the probe")
    return {"run_id": run.run_id, "root_hash": run.root_hash}


def steps_of(given: str | os.PathLike[str] | Run) -> Steps:
    """Label of every step that a run has itself -> its coordinates; visits of schema 1 are counted."""
    run = open_run(given.path if isinstance(given, Run) else given)  # without what other probe runs found
    found: Steps = {}
    for key in run.nodes:
        group, _, name = key.rpartition("/")
        if name in ("step", "snapshot"):
            known = [one for one in STEP_COORDINATES if f"{group}/{one}" in run.nodes]
            columns = (run.array(f"{group}/{one}").tolist() for one in (name, *known))
            found |= {row[0]: dict(zip(("step", *known), row, strict=True)) for row in zip(*columns, strict=True)}
    if any(VISIT not in at for at in found.values()):
        found = {step: {**found[step], VISIT: visit} for step, (visit, _) in visits_by_step(run).items()}
    return found


def step_of_source(
    steps: Steps, last: Progress, tasks: Sequence[str], train_task: str | int | None, given: Mapping[str, Any]
) -> Progress:
    """The coordinates that a step of a probe run has in its source; `given` ones that are others are refused.

    `given` has `step` and `epoch`, and None for what is not said.
    """
    step = next_step(last, given["step"])
    there = steps.get(step)
    index = task_index(train_task, tasks)
    here = (JOINT if index < 0 else tasks[index], finite("epoch", given["epoch"]))
    if there is None or here != (there["train_task"], there["epoch"]):
        place = None if there is None else (there["train_task"], there["epoch"])
        expected = f"its source has {place} there" if place else "its source has no such step"
        raise WaterjarError(f"step={step} of a probe run is at (task, epoch) {here}: {expected}")
    for name, value in given.items():
        if value is not None and name != "step" and finite(name, value) != there[name]:
            raise WaterjarError(f"step={step} of a probe run has {name}={value}: its source has {there[name]} there")
    return dict(there)
