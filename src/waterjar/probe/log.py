"""Recording what probes found: into /probes of a run, by the step at which each was taken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from waterjar.diagnose.result import Result
from waterjar.diagnose.snapshots import PROBE_REASON, PROBE_STEP
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.recorder import Recorder
from waterjar.run.schema import REASONS, Variable

_PROBES = {
    "sharpness": Variable(("repeat", "sharpness_moment"), "largest eigenvalue of the Hessian of the loss"),
    "random_label_epochs": Variable(
        ("repeat", "random_label_moment"), "epochs to fit fresh random labels", "epoch", "lower"
    ),
}

VARIABLES: dict[str, Variable] = {}
"""What a recorder must be opened with: `Recorder(..., variables=probe.VARIABLES)`."""
for _name, _variable in _PROBES.items():
    VARIABLES[f"probes/{_name}"] = _variable
    VARIABLES[f"probes/{_name}{PROBE_STEP}"] = Variable(_variable.dims, f"step at which {_name} was taken")
    _codes = ", ".join(f"{code} {reason}" for code, reason in enumerate(REASONS))
    VARIABLES[f"probes/{_name}{PROBE_REASON}"] = Variable(_variable.dims, f"why {_name} is missing: {_codes}")


class ProbeLog:
    """Collects results of probes while training goes on, and records them at its end.

    /probes is written once, so that a probe that was interrupted leaves nothing half done. After a resume, put in
    what was found before again: the same seed gives the same bits.

    >>> log = ProbeLog(repeats=1)
    >>> log.add("sharpness", step=3, result=Result(2.5))
    """

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._found: dict[str, dict[int, dict[int, Result]]] = {}

    def add(self, probe: str, *, step: int, result: Result, repeat: int = 0) -> None:
        """One result of a probe, taken at a logged step."""
        if probe not in _PROBES:
            raise unknown_name("probe", probe, _PROBES)
        if not 0 <= repeat < self._repeats:
            raise WaterjarError(f"repeat={repeat}: expected one from 0 to {self._repeats - 1}")
        at_step = self._found.setdefault(probe, {}).setdefault(step, {})
        if repeat in at_step:
            raise WaterjarError(f"{probe} of repeat {repeat} at step {step} was added before: expected it once")
        at_step[repeat] = result

    def write(self, recorder: Recorder) -> None:
        """Record all of it. What was not added for a repeat is `not_recorded`."""
        for probe, steps in self._found.items():
            arrays = self._arrays(dict(sorted(steps.items())))
            names = (probe, probe + PROBE_STEP, probe + PROBE_REASON)
            recorder.once("probes", **dict(zip(names, arrays, strict=True)))

    def _arrays(self, steps: Mapping[int, Mapping[int, Result]]) -> tuple[object, object, object]:
        shape = (self._repeats, len(steps))
        values, codes = np.full(shape, np.nan), np.full(shape, REASONS.index("not_recorded"), np.uint8)
        for i, found in enumerate(steps.values()):
            for repeat, result in found.items():
                values[repeat, i], codes[repeat, i] = result.value, result.code
        labels = np.broadcast_to(np.array(list(steps), np.int64), shape).copy()
        return values, labels, codes
