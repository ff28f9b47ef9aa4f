"""What is to be said of probe runs beside their source: what is left out, and whether it is the same network."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.run.reader import Run, joined_groups, probed_by_several
from waterjar.run.root import DamagedError

_LOGITS, _LABELS, _SETS = "streams/collective_logits", "probe_samples/label", "streams/eval_set"
_SAME = 1e-4
"""How far logits of one network may be apart, as a share of the largest: other machines, other sizes of batches."""


def left_out(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """(group, why) of what more than one of a run and its probe runs, which follow it, has: none of it counts."""
    return [
        (group, f"{' and '.join(names)} both have /{group} of {runs[0].path.name}: it is left out")
        for group, names in probed_by_several(runs).items()
    ]


def not_shown(runs: Sequence[Run]) -> list[str]:
    """A sentence of each probe run, which follow their source, that has recorded what is not joined to it."""
    said = []
    for run in runs[1:]:
        able = joined_groups(runs[0], run)
        outside = ", ".join(f"/{group}" for group in run.groups if group.split("/")[0] not in able)
        if outside:
            said.append(
                f"{run.path.name}, a probe run of {runs[0].path.name}, recorded {outside}, which is not shown with its "
                f"source: waterjar report {shlex.quote(str(run.path))}"
            )
    return said


def other_model(source: Run, probe: Run) -> str:
    """A sentence where a probe run holds other logits of the collective than its source of the same samples and step.

    Empty where they are the same, and where not both recorded them: samples count as the same if all labels of a set
    are. Neither run is one to which probe runs are joined; of a damaged one its seal tells.
    """
    with contextlib.suppress(DamagedError):
        return _other_model(source, probe)
    return ""


def _other_model(source: Run, probe: Run) -> str:
    if not all(key in run.nodes for run in (source, probe) for key in (_LOGITS, _LABELS, _SETS)):
        return ""
    steps = [run.array("streams/snapshot").tolist() for run in (source, probe)]
    common = [step for step in steps[1] if step in steps[0]]
    if not common or source.seeds != probe.seeds:
        return ""
    was, now = (_answers(run, own.index(common[-1])) for run, own in zip((source, probe), steps, strict=True))
    for name, (logits, labels) in reversed(now.items()):  # the set that is scored comes last
        before, there = was.get(name, (logits, labels))
        if not np.array_equal(there, labels) or before.shape != logits.shape or _same(before, logits):
            continue
        return (
            f"{probe.path.name} was not made of the network that {source.path.name} recorded at step {common[-1]}, or "
            f"not of the same samples: the collective has other logits of the set '{name}' (accuracy "
            f"{_accuracy(logits, labels):.3f}, and {_accuracy(before, labels):.3f} in {source.path.name})"
        )
    return ""


def _answers(run: Run, position: int) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Set -> (logits (repeat, sample, class) of the collective, labels (repeat, sample)) of samples with a label."""
    logits, labels = run.row(_LOGITS, position), run.array(_LABELS)
    found = {}
    for place, name in enumerate(run.array(_SETS)):
        counted = np.flatnonzero((labels[:, place] >= 0).all(0))
        if len(counted):
            found[str(name)] = logits[:, place].take(counted, 1), labels[:, place].take(counted, 1)
    return found


def _same(was: NDArray[Any], now: NDArray[Any]) -> bool:
    coarse = 4 * max(float(np.finfo(one.dtype).eps) for one in (was, now))
    wide = was.astype(np.float64)
    largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=1.0))
    return np.allclose(wide, now.astype(np.float64), rtol=0, atol=max(coarse, _SAME) * largest, equal_nan=True)


def _accuracy(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    return float((logits.argmax(-1) == labels).mean())
