"""Recording what probes found: into /probes of a run, by the step at which each was taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.run.recorder import Recorder
from waterjar.run.rows import Reasoned
from waterjar.run.schema import STEP, Variable

VARIABLES = {
    "probes/sharpness/sharpness": Variable(STEP, "largest eigenvalue of the Hessian of the loss"),
    "probes/random_label_epochs/random_label_epochs": Variable(
        STEP, "epochs to fit fresh random labels", "epoch", "lower"
    ),
}
"""What our own probes are called in full: `Recorder(..., variables=probe.VARIABLES)` writes it beside their numbers."""


def record_probe(recorder: Recorder, probe: str, found: Result | Sequence[Result | None]) -> None:
    """Record what a probe found at the last logged step: one result per repeat, None where it was not taken.

    >>> import tempfile
    >>> with Recorder(tempfile.mkdtemp() + "/run", {}) as recorder:
    ...     step = recorder.log(epoch=0, train={"loss": 1.0})
    ...     record_probe(recorder, "sharpness", Result(2.5))
    """
    results = [found] if isinstance(found, Result) else list(found)
    if len(results) != recorder.repeats:
        raise WaterjarError(f"{probe} has {len(results)} results; expected one for each of {recorder.repeats} repeats")
    taken = [Result.missing("not_recorded") if result is None else result for result in results]
    values = np.array([float(result) for result in taken])
    recorder.probe(probe, Reasoned(values, np.array([result.code for result in taken], np.uint8)))
