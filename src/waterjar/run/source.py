"""A probe of a training that is over is a run of its own, which names the sealed run that it looked into."""

from __future__ import annotations

import os
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.reader import Run, open_run

Steps = dict[int, tuple[str, float]]


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
    """Label of every step that a run has -> its task and epoch."""
    run = given if isinstance(given, Run) else open_run(given)
    found: Steps = {}
    for key in run.nodes:
        group, _, name = key.rpartition("/")
        if name in ("step", "snapshot"):
            columns = (run.array(f"{group}/{column}").tolist() for column in (name, "train_task", "epoch"))
            found |= {label: (task, epoch) for label, task, epoch in zip(*columns, strict=True)}
    return found


def check_step(at: dict[str, Any], steps: Steps) -> None:
    """Refuse a step of a probe run that its source does not have, or has with another task or epoch."""
    here = (at["train_task"], at["epoch"])
    there = steps.get(at["step"])
    if there != here:
        expected = f"its source has {there} there" if there else "its source has no such step"
        raise WaterjarError(f"step={at['step']} of a probe run is at (task, epoch) {here}: {expected}")
