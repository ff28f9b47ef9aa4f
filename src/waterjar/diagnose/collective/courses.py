"""The expected course of training: rho near 1, rising, then a plateau; routing from spread out to sharp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from waterjar.diagnose.collective._emergence_ratio import point
from waterjar.diagnose.collective._routing_entropy import normalised
from waterjar.diagnose.collective.inputs import Routing, StreamOutputs
from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.result import Floats, Result
from waterjar.run.schema import REASON, REASONS

_TOLD = {
    "emergence_rise": ("rho", ("rises", "falls")),
    "emergence_plateau": ("rho in the last quarter", ("still rises", "falls")),
    "routing_entropy_change": ("routing entropy (normalised)", ("spreads out", "sharpens")),
}


_OF_HEADS = ("emergence_rise", "emergence_plateau")
_FLAGS = ("best_at_chance", "best_below_probe")
_SET_ASIDE = (
    "the course of rho is set aside: at the end the best stream's own head is, in some seed, not surely above one "
    "constant answer, or far below a linear probe of the same features"
)


def course_numbers(outputs: StreamOutputs | None, routing: Routing | None) -> tuple[Result, Result]:
    """Emergence ratio and normalised routing entropy of a snapshot."""
    absent = Result.missing("not_recorded")
    return (absent if outputs is None else point(outputs)), (absent if routing is None else normalised(routing))


def change(values: Result, epochs: Floats, since: float) -> Result:
    """Last value less that at the first snapshot from the epoch `since` on, of values (snapshot,).

    >>> float(change(Result.of([1.0, 1.5, 1.75]), np.array([0.0, 1.0, 2.0]), 0.0))
    0.75
    """
    if len(epochs) < 2:
        return Result.missing("not_recorded", "a course needs two snapshots")
    first = int(np.flatnonzero(epochs >= since)[0])
    if first == len(epochs) - 1:
        return Result.missing("not_recorded", "no other snapshot is that late")
    both = values.value[[first, -1]]
    if not np.isfinite(both).all():
        codes = np.asarray(values.reason)[[first, -1]]
        why = REASONS[int(codes.max())] if codes.any() else "undefined"
        return Result.missing(why, "one of its ends has no finite number")
    return Result(float(both[1] - both[0]), n=len(epochs))


def course_words(found: Mapping[str, Any], confidence: float) -> str:
    """The course of a cell in words, each judged by its interval over seeds; empty where nothing was recorded."""
    weak = _has_weak_heads(found)
    said = [_SET_ASIDE] if weak and any(name in found for name in _OF_HEADS) else []
    for name, (what, (up, down)) in _TOLD.items():
        if name not in found or (weak and name in _OF_HEADS):
            continue
        codes = found[name + REASON].values if name + REASON in found else np.zeros(found[name].shape, int)
        told = over_seeds(found[name].values, [REASONS[int(code)] for code in codes], confidence)
        if not told.n:
            continue
        number = f"{told.mean:+.3g}"
        if np.isnan(told.low):
            said.append(f"{what} changes by {number}, of {told.n} seed: others may differ")
            continue
        verdict = up if told.low > 0 else down if told.high < 0 else "does not surely change"
        said.append(f"{what} {verdict}: {number} [{told.low:+.3g}, {told.high:+.3g}] over {told.n} seeds")
    return "; ".join(said)


def _has_weak_heads(found: Mapping[str, Any]) -> bool:
    """Whether rho is set aside: in some seed the head that it divides by at the end is no control."""
    for name in _FLAGS:
        for flags in found[name].values if name in found else ():
            known = flags[np.isfinite(flags)]
            if known.size and known[-1] > 0:
                return True
    return False
