"""A probe of a training that is over is a run of its own, which names the sealed run that it looked into."""

from __future__ import annotations

import os
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.reader import Run, open_run


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
