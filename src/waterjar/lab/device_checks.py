"""Does a device keep what runs promise? Tried on small studies that are really trained there.

- equality: the same declaration gives the same bits again, also with two runs at a time.
- resume: a run whose process is killed (SIGKILL) and that is taken up again ends with the bits of an unbroken one.
- neutrality: recording more changes nothing of what the others have recorded.

Our own tests have no accelerator at hand, so whoever has one can look here.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.lab import study
from waterjar.lab.config import resolve_device
from waterjar.lab.study import Job, declare
from waterjar.lab.study.attempts import step_of
from waterjar.run.study import Study

_GLYPHS = {"alphabets": 4, "characters": 2, "train_per_class": 24, "test_per_class": 8}
_MORE = {"features": ["penultimate"], "weights": True, "samples": 8}
_COMPARED = ("performance", "train")
STUDIES: dict[str, dict[str, Any]] = {
    "einstellung": {
        "kind": "einstellung",
        "data": {"name": "glyphs", "settings": _GLYPHS},
        "seeds": [1],
        "backbones": [{"name": "small_cnn", "settings": {"width": 8}}],
        "strategies": [{"learner": "derpp", "settings": {"buffer_size": 16}}],
        "scenarios": ["sequential"],
        "tasks": {"t1_superclasses": [0, 1], "t2_superclasses": [2, 3], "shortcut_superclasses": [2]},
        "training": {"epochs_t1": 8, "epochs_t2": 8, "batch_size": 8},
        "recording": {},
    },
    "binary": {
        "kind": "binary",
        "data": {"name": "glyphs", "settings": _GLYPHS},
        "tasks": {"number": 2},
        "repeats": 2,
        "algorithms": ["sl"],
        "training": {"epochs": 10, "batch_size": 8},
        "recording": {},
    },
}
"""Kind of study -> one run that takes seconds."""


@dataclass(frozen=True)
class Check:
    """One promise on one kind of study."""

    promise: str
    kind: str
    holds: bool
    told: str
    """What was found."""


def check_device(device: str, folder: Path) -> Iterator[Check]:
    """Try all promises on a device, in an empty folder; each is told as soon as it is known."""
    target = resolve_device(device)  # type: ignore[arg-type]
    for kind, content in STUDIES.items():
        steered: dict[str, Any] = {"device": target, "checkpoint_seconds": 0.05}
        steered |= {"engine": "loop"} if kind == "binary" else {}
        place = folder / kind
        whole = study.run(declare({**content, "resources": steered}), place / "whole")
        again = study.run(declare({**content, "resources": {**steered, "workers": 2}}), place / "again")
        yield _compared("equality", kind, whole, again, "trained twice")
        killer = _Killer()
        killed = study.run(
            declare({**content, "resources": steered}), place / "killed", watch=killer, poll_seconds=0.01
        )
        if killer.killed:
            yield _compared("resume", kind, whole, killed, "killed on its way, and taken up again")
        else:
            yield Check("resume", kind, False, "the run was complete before its process could be killed: try again")
        more = study.run(declare({**content, "recording": _MORE, "resources": steered}), place / "more")
        yield _neutral(kind, whole, more)


class _Killer:
    """Kills the first process that has recorded a step behind the first evaluation."""

    def __init__(self) -> None:
        self.killed = False

    def __call__(self, jobs: list[Job], last: bool) -> None:
        for job in jobs:
            if not self.killed and not last and not job.is_sealed and step_of(job.path) >= 1:
                with contextlib.suppress(OSError, ValueError):  # it has just let go of its lock
                    pid = int((job.path / ".waterjar" / "lock").read_text())
                    if pid != os.getpid():
                        os.kill(pid, signal.SIGKILL)
                        self.killed = True


def _compared(promise: str, kind: str, whole: Study, other: Study, how: str) -> Check:
    """Whether two studies have the same contents, and where they part if not."""
    contents = [{run.run_id: run.attributes["seal"]["content"] for run in found} for found in (whole, other)]
    if contents[0] == contents[1]:
        return Check(promise, kind, True, f"{how}: the same bits")
    return Check(promise, kind, False, f"{how}: {_first_difference(whole, other) or 'other contents'}")


def _neutral(kind: str, less: Study, more: Study) -> Check:
    found = _first_difference(less, more)
    return Check(
        "neutrality", kind, found is None, f"features and weights recorded as well: {found or 'the same numbers'}"
    )


def _first_difference(one: Study, other: Study) -> str | None:
    """The first step at which numbers of the two, run by run, are not the same bits."""
    for left, right in zip(one, other, strict=True):
        for group in _COMPARED:
            there, here = left.load(group), right.load(group)
            if there is None or here is None:
                raise WaterjarError(f"{left.path} has recorded no {group}")
            for name in map(str, there.data_vars):
                a, b = there[name].values, here[name].values
                if a.shape != b.shape or a.dtype != b.dtype:
                    return f"{group}/{name} has another shape or type"
                same = a == b
                if a.dtype.kind == "f":
                    same |= np.isnan(a) & np.isnan(b)
                if not same.all():
                    step = int(np.argwhere(~same)[0][0])
                    return f"{group}/{name} differs from step {step} on"
    return None
