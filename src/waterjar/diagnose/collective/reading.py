"""What one run has recorded of its streams: which sets are scored, which samples count, and a snapshot of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.collective.answers import Answers, Array, Labels
from waterjar.diagnose.snapshots import RunArrays, repeat_blocks
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.schema import MOST_TARGETS, TRAIN

VALIDATION = ("val", "valid", "validation")
"""Names of a set on which things are chosen, where no setting names one."""
_OUTPUTS = ("logits", "isolated_logits", "collective_logits", "pooled")
OUTPUTS = ("logits", "collective_logits", "isolated_logits")
"""Without one of these there is nothing to score."""
COALITIONS = ("coalition_correct", "coalition_log_likelihood")
ORDERS = "coalition_order"


class Shot:
    """One snapshot of one repeat: the arrays of /streams, (eval_set, sample, ...) or (stream, ...)."""

    def __init__(self, run: RunStreams, repeat: int, arrays: dict[str, Array]) -> None:
        self.run, self.repeat, self.arrays = run, repeat, arrays

    def part(self, name: str, sets: Sequence[str]) -> Array | None:
        """The samples of some sets, stacked: (sample, ...)."""
        if name not in self.arrays:
            return None
        return self.run.stack(self.arrays[name], sets, self.repeat)

    def answers(self, sets: Sequence[str]) -> Answers:
        """What was answered on some sets."""
        logits, isolated, collective, pooled = (self.part(name, sets) for name in _OUTPUTS)
        labels = self.run.sample_labels(sets, self.repeat)
        return Answers(labels, logits, isolated, collective, pooled)


class RunStreams:
    """Streams, snapshots, sets and samples of one run."""

    def __init__(self, run: Run, settings: Any) -> None:
        self.arrays = RunArrays(run)
        self.run, self.path = run, run.path
        self._nodes = {
            key.removeprefix("streams/"): node
            for key, node in self.arrays.nodes.items()
            if key.startswith("streams/") and node["node_type"] == "array"
        }
        old = next((node for name, node in self._nodes.items() if name in OUTPUTS and "eval_set" not in _dims(node)), 0)
        if old:
            raise WaterjarError(
                f"{self.path}: its streams do not say their evaluation set: 'waterjar migrate' copies it into schema 2"
            )
        self.labels = self.arrays.labels("streams")
        self.steps = self.arrays.coordinates(self.labels)
        self.streams = self._names("stream")
        self.for_want = ""
        """A sentence where a set is scored that is for something else; empty where none is."""
        self.anchors = self._size("anchor")
        self.coalitions = self._names("coalition")
        self.sets = [str(name) for name in self.arrays.whole("streams/eval_set")] if "eval_set" in self._nodes else []
        self.validation = self._one_set("validation", settings.validation, VALIDATION)
        after = (TRAIN, self.validation) if self.validation else (TRAIN,)
        self.probe_on = self._one_set("probe_on", settings.probe_on, after)
        self.test = self._scored(settings.test)
        if self.validation in self.test:
            self.validation = None
        if self.probe_on in self.test:
            self.probe_on = None
        known = "probe_samples/label" in self.arrays
        self._labels: NDArray[np.int64] | None = self.arrays.whole("probe_samples/label") if known else None
        self._counted: dict[tuple[int, bool], NDArray[np.bool_]] = {}
        self.targets = self._count_targets()
        self._order: list[int] | None = None

    def follow(self, names: Sequence[str]) -> None:
        """Put streams into the order of these names, which are its own; everything that is read after it is in it."""
        self._order = [self.streams.index(name) for name in names]
        self.streams = list(names)
        self.coalitions = [
            f"{absence}:{''.join(bits[i] for i in self._order)}" if len(bits) == len(names) else whole
            for whole in self.coalitions
            for absence, _, bits in [whole.partition(":")]
        ]

    def _in_order(self, name: str, array: Array, before: int) -> Array:
        """An array of /streams without its first dimensions, its streams in the order that is followed."""
        dims = _dims(self._nodes[name])[before:]
        if self._order is None or "stream" not in dims:
            return array
        return np.take(array, self._order, axis=dims.index("stream"))

    def _names(self, dim: str) -> list[str]:
        """Labels along a dimension, or numbers where it has none."""
        if dim in self._nodes:
            return [str(name) for name in self.arrays.whole(f"streams/{dim}")]
        return [str(i) for i in range(self._size(dim))]

    def _size(self, dim: str) -> int:
        sizes = (dict(zip(_dims(node), node["shape"], strict=True)).get(dim) for node in self._nodes.values())
        return next((int(size) for size in sizes if size is not None), 0)

    def has(self, name: str) -> bool:
        """Whether an array was recorded."""
        return name in self._nodes

    def _one_set(self, setting: str, wanted: str | None, usual: Sequence[str]) -> str | None:
        if wanted is not None and wanted not in self.sets:
            raise unknown_name(f"{self.path}: {setting}", wanted, self.sets)
        return wanted or next((name for name in usual if name in self.sets), None)

    def _scored(self, wanted: Sequence[str] | None) -> list[str]:
        for name in wanted or ():
            if name not in self.sets:
                raise unknown_name(f"{self.path}: test", name, self.sets)
        if wanted is not None:
            return [name for name in self.sets if name in wanted]
        left = [name for name in self.sets if name not in (self.validation, TRAIN)]
        tasks = self.run.attributes["eval_sets"]
        kept = spoken_for({name: int(tasks.get(name, -1)) for name in left})
        chosen = kept or [name for name in self.sets if name != TRAIN] or self.sets
        if chosen and not kept:
            use = "trains" if chosen == [TRAIN] else "chooses"
            self.for_want = (
                f"{self.path.name} is scored on {chosen[0]}, a set that {use}, since it has recorded no other"
            )
        return chosen

    def _count_targets(self) -> int:
        """How many places routes go to: one more than the largest that was recorded."""
        if "route_index" not in self._nodes:
            return self._size("route")
        largest = -1
        for position in range(len(self.labels)):
            for block in self._blocks(["route_index"]):
                values = self.arrays.row("streams/route_index", position, block)
                largest = max(largest, int(np.nanmax(values, initial=-1)))
        if largest >= MOST_TARGETS:
            raise WaterjarError(
                f"{self.path}: streams/route_index goes up to {largest}: expected places that are counted from 0 on, "
                f"fewer than {MOST_TARGETS}"
            )
        return largest + 1

    def _blocks(self, names: Sequence[str]) -> list[slice]:
        each = sum(8 * int(np.prod(self._nodes[name]["shape"][2:])) for name in names)
        return repeat_blocks(len(self.arrays.seeds), each)

    @property
    def axes(self) -> xr.Dataset:
        """Snapshots of this run, with where they stand."""
        return xr.Dataset(coords={"repeat": np.arange(len(self.arrays.seeds)), "snapshot": self.labels, **self.steps})

    def shots(self) -> Iterator[tuple[int, int, Shot]]:
        """Every snapshot of every repeat: repeat, position of the snapshot, arrays."""
        names = [name for name, node in self._nodes.items() if _dims(node)[:2] == ("snapshot", "repeat")]
        for block in self._blocks(names):
            for position in range(len(self.labels)):
                yield from self._shots(names, block, position)

    def last_shots(self, names: Sequence[str]) -> Iterator[Shot]:
        """The last snapshot of every repeat, with some of its arrays."""
        own = [name for name in names if name in self._nodes]
        for block in self._blocks(own) if self.labels else ():
            for _, _, shot in self._shots(own, block, len(self.labels) - 1):
                yield shot

    def _shots(self, names: Sequence[str], block: slice, position: int) -> Iterator[tuple[int, int, Shot]]:
        rows = {name: self._in_order(name, self.arrays.row(f"streams/{name}", position, block), 1) for name in names}
        for place, repeat in enumerate(range(block.start, block.stop)):
            yield repeat, position, Shot(self, repeat, {name: row[place] for name, row in rows.items()})

    def once(self, name: str, repeat: int) -> float | None:
        """A number that was written once."""
        return float(self.arrays.whole(f"streams/{name}")[repeat]) if name in self._nodes else None

    def places(self, repeat: int) -> Labels | None:
        """(order, stream): the place at which each stream joins in the orders that coalitions are of; None for none."""
        if ORDERS not in self._nodes:
            return None
        return self._in_order(ORDERS, self.arrays.whole(f"streams/{ORDERS}")[repeat], 1).astype(np.int64)

    def _counts(self, repeat: int, samples: int, *, labelled: bool) -> NDArray[np.bool_]:
        """(eval_set, sample): which places hold a sample, or one with a label; sets may be filled up to the largest."""
        if (repeat, labelled) not in self._counted:
            sizes = self.run.attributes.get("eval_sizes") or {}
            ends = np.array([sizes.get(name, samples) for name in self.sets])
            there = np.arange(samples) < ends[:, None]
            if self._labels is not None and labelled:
                there = there & (self._labels[repeat] >= 0)
            self._counted[repeat, labelled] = there
        return self._counted[repeat, labelled]

    def _lacks_labels(self, sets: Sequence[str], repeat: int) -> bool:
        """Whether none of the samples of some sets has a label; sets whose sizes nobody told may be empty."""
        sizes = self.run.attributes.get("eval_sizes") or {}
        if self._labels is None or not any(sizes.get(name, 0) for name in sets):
            return self._labels is None
        return not any((self._labels[repeat][self.sets.index(name)] >= 0).any() for name in sets)

    def unlabelled(self, sets: Sequence[str], repeat: int) -> str:
        """A sentence on samples without a label; empty where all have one, or where nobody told the sizes of sets."""
        sizes = self.run.attributes.get("eval_sizes") or {}
        told = {name: sizes[name] for name in sets if name in sizes}
        if self._labels is None or not any(told.values()):
            return ""
        count = sum(int((self._labels[repeat][self.sets.index(name)][:size] < 0).sum()) for name, size in told.items())
        if not count:
            return ""
        if self._lacks_labels(sets, repeat):
            return f"no sample of {', '.join(sets)} has a label (probe_samples/label is -1): nothing can be scored"
        return f"{count} of {sum(told.values())} samples of {', '.join(told)} have no label, and are not scored"

    def stack(self, array: Array, sets: Sequence[str], repeat: int) -> Array:
        """(eval_set, sample, ...) -> (sample, ...) of some sets, one behind the other."""
        chosen = [self.sets.index(name) for name in sets]
        counted = self._counts(repeat, array.shape[1], labelled=not self._lacks_labels(sets, repeat))
        return np.concatenate([array[i][counted[i]] for i in chosen])

    def sample_labels(self, sets: Sequence[str], repeat: int) -> Labels | None:
        """(sample,): labels of the samples of some sets; None where none was recorded."""
        if self._labels is None or self._lacks_labels(sets, repeat):
            return None
        return self.stack(self._labels[repeat], sets, repeat).astype(np.int64)


def spoken_for(belongs: Mapping[str, int]) -> list[str]:
    """The sets that are scored where nobody names any: of a task with several the one of all its samples, by its name.

    `belongs` has the task of every set, -1 for none. Others of that task are parts of it, and would count twice.

    >>> spoken_for({"test": -1, "t1_all": 0, "t2_all": 1, "t2_masked": 1})
    ['test', 't1_all', 't2_all']
    """
    whole: dict[int, list[str]] = {}
    for ending in ("_all", "_all_normal"):
        for task in {task for task in belongs.values() if task >= 0}:
            own = [name for name, other in belongs.items() if other == task and name.endswith(ending)]
            if len(own) == 1:
                whole.setdefault(task, own)
    return [name for name, task in belongs.items() if name in whole.get(task, [name])]


def _dims(node: Any) -> tuple[str, ...]:
    return tuple(node["dimension_names"])
