"""Is a run what its declaration makes? Two runs compared number by number, and what differs in how they were made.

Equal bits are the answer that proves most. On another machine, or with other versions or threads, sums round in another
order, and the difference grows while training goes on: from its first step it never goes away again. A difference that
does go away is not of that kind, however small it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from waterjar.run.reader import Run
from waterjar.run.seal import is_of_the_occasion

Verdict = Literal["equal", "within tolerance", "differs"]
_HOST = ("system", "machine", "processor", "accelerators")
_ABOUT = ("seeds", "tasks", "eval_sets", "eval_sizes", "probe_sets", "classes", "labels", "data_fingerprint")
_SPREADING = ("train/loss", "train/gradient_norm", "performance/loss", "weights/weights")
"""Arrays in which a difference of rounding, once it is there, stays: no two networks have one loss by chance."""


@dataclass(frozen=True)
class Difference:
    """An array that differs: from which step on (None of one that does not grow), and by how much at most."""

    array: str
    step: int | None
    largest: float
    """Relative to the largest number of the array; infinite where shapes, texts or what is missing differ."""
    words: str = ""
    """What differs, if it is not the size of numbers."""


@dataclass(frozen=True)
class Sameness:
    """Whether a run came out as recorded."""

    verdict: Verdict
    differences: list[Difference] = field(default_factory=list)
    """The first one first."""
    surroundings: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What was different when it was made -> as recorded, now."""
    vanishes: bool = False
    """Whether a difference goes away again, which that of rounding never does."""

    def __str__(self) -> str:
        """One sentence, and one on what was different."""
        told = "; ".join(f"{name}: {then} then, {now} now" for name, (then, now) in self.surroundings.items())
        beside = f" It was made with other things ({told})." if told else ""
        if self.verdict == "equal":
            return f"equal: every number is the same to the bit.{beside}"
        first = self.differences[0]
        where = f"array {first.array}" if first.step is None else f"step {first.step}, array {first.array}"
        size = first.words or f"by {first.largest:.2g} of its largest number"
        worst = max(self.differences, key=lambda one: one.largest)
        if self.verdict == "within tolerance":
            return (
                f"within tolerance: not the same bits, from {where} on; at most {worst.largest:.2g} of the largest "
                f"number of an array ({worst.array}).{beside}"
            )
        why = " It goes away again at later steps, which a difference of rounding does not." if self.vanishes else ""
        same = "" if told else " Versions, threads and machine are the same, so the bits should be."
        return f"differs from {where} on, {size}; {len(self.differences)} arrays in all.{why}{beside}{same}"


def compare_runs(recorded: Run, again: Run, tolerance: float = 0.01) -> Sameness:
    """Compare what two runs recorded; clocks, memory and provenance are left out.

    Where all was made alike (versions, threads, machine), anything but equal bits differs. Else numbers may differ by
    `tolerance` of the largest one of their array, if the difference does not go away again.
    """
    recorded, again = recorded.recorded, again.recorded  # annotations are none of what a training makes
    surroundings = _surroundings(recorded, again)
    found = sorted(_differences(recorded, again), key=lambda one: (-1 if one.step is None else one.step, one.array))
    if not found:
        return Sameness("equal", surroundings=surroundings)
    vanishes = _vanishes(recorded, again, found)
    alike = all(one.largest <= tolerance for one in found) and bool(surroundings) and not vanishes
    return Sameness("within tolerance" if alike else "differs", found, surroundings, vanishes)


def _differences(recorded: Run, again: Run) -> Iterator[Difference]:
    for key in _ABOUT:
        then, now = recorded.attributes.get(key), again.attributes.get(key)
        if then != now:
            yield Difference(f"the root's {key}", None, np.inf, f"{then!r} recorded, {now!r} now")
    arrays = [_arrays(run) for run in (recorded, again)]
    if recorded.attributes["waterjar_schema"] != again.attributes["waterjar_schema"]:
        both = arrays[0].keys() & arrays[1].keys()  # an earlier schema had some in other places
        arrays = [{key: found[key] for key in both} for found in arrays]
    for key in sorted(arrays[0].keys() | arrays[1].keys()):
        if key not in arrays[0] or key not in arrays[1]:
            yield Difference(
                key, None, np.inf, "not recorded" if key not in arrays[0] else "recorded, and not there now"
            )
            continue
        one = _difference(key, recorded, again)
        if one is not None:
            yield one


def _arrays(run: Run) -> dict[str, Any]:
    found = {key: node for key, node in run.nodes.items() if node["node_type"] == "array"}
    return {key: node for key, node in found.items() if not is_of_the_occasion(f"{key}/")}


def _difference(key: str, recorded: Run, again: Run) -> Difference | None:
    """How an array differs; read row by row where it grows, since snapshots may be larger than memory together."""
    shapes = [run.nodes[key]["shape"] for run in (recorded, again)]
    if shapes[0] != shapes[1]:
        return Difference(key, None, np.inf, f"of shape {shapes[0]} recorded, {shapes[1]} now")
    first, largest, scale, words = None, 0.0, 0.0, ""
    for label, then, now in _rows(key, recorded, again):
        if then.dtype.kind not in "fiub" or now.dtype.kind not in "fiub":
            size = 0.0 if np.array_equal(then, now) else np.inf
        else:
            size = _apart(then, now)
            scale = max(scale, float(np.nanmax(np.abs(_finite(then)), initial=0.0)))
        if not _same_bits(then, now):
            words = words or ("" if np.isfinite(size) else "in what is missing, or in words")
            first = (label,) if first is None else first
            largest = max(largest, size)
    if first is None:
        return None
    return Difference(key, first[0], largest / scale if scale and np.isfinite(largest) else largest or np.inf, words)


def _rows(key: str, recorded: Run, again: Run) -> Iterator[tuple[int | None, NDArray[Any], NDArray[Any]]]:
    node = recorded.nodes[key]
    dim = (node["dimension_names"] or [""])[0]
    labels = f"{key.rpartition('/')[0]}/{dim}"
    if dim not in ("step", "snapshot"):
        yield None, recorded.array(key), again.array(key)
        return
    steps = recorded.array(labels).tolist()
    if dim == "step":  # small, and many rows to a chunk
        for label, then, now in zip(steps, recorded.array(key), again.array(key), strict=True):
            yield label, np.asarray(then), np.asarray(now)
        return
    for place, label in enumerate(steps):
        region = [(place, place + 1), *((0, size) for size in node["shape"][1:])]
        yield label, recorded.array(key, region), again.array(key, region)


def _same_bits(then: NDArray[Any], now: NDArray[Any]) -> bool:
    return then.dtype == now.dtype and np.array_equal(then, now, equal_nan=then.dtype.kind == "f")


def _apart(then: NDArray[Any], now: NDArray[Any]) -> float:
    """The largest difference; infinite where one is a number and the other is none."""
    one, other = (np.asarray(array, np.float64) for array in (then, now))
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        apart = np.where(one == other, 0.0, np.abs(one - other))
    return float(np.nanmax(apart, initial=0.0))


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    numbers = np.asarray(values, np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _vanishes(recorded: Run, again: Run, found: list[Difference]) -> bool:
    """Whether, at a step after the first difference, all that a difference of rounding stays in is equal again."""
    begun = min((one.step for one in found if one.step is not None), default=None)
    if begun is None:
        return False
    equal: dict[int, bool] = {}
    for key in _SPREADING:
        if key in recorded.nodes and recorded.nodes[key]["shape"] == again.nodes.get(key, {}).get("shape"):
            for label, then, now in _rows(key, recorded, again):
                if label is not None and label > begun:
                    equal[label] = equal.get(label, True) and _same_bits(then, now)
    return any(equal.values())


def _surroundings(recorded: Run, again: Run) -> dict[str, tuple[str, str]]:
    """What was different when the two were made; a run of several sessions has all of theirs."""
    then, now = (_made_with(run) for run in (recorded, again))
    return {name: (then.get(name, "unknown"), now.get(name, "unknown")) for name in sorted(then.keys() | now.keys())
            if then.get(name) != now.get(name)}  # fmt: skip


def _made_with(run: Run) -> dict[str, str]:
    found: dict[str, dict[str, None]] = {}
    for session in run.attributes["provenance"]["sessions"]:
        about = {
            **session.get("versions", {}),
            **{key: session[key] for key in ("numerics_version", "threads") if session.get(key) is not None},
            **{key: value for key, value in session.get("host", {}).items() if key in _HOST},
        }
        for name, value in about.items():
            found.setdefault(str(name), {})[str(value)] = None
    return {name: ", ".join(values) for name, values in found.items()}
