"""Arrays as a person hands them over, brought to the shapes of /streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.arrays import fitting, to_numpy
from waterjar.run.schema import MOST_TARGETS

Array = NDArray[Any]
ALONE = "test"
"""The evaluation set of arrays that do not say theirs."""


@dataclass(frozen=True)
class Given:
    """What a person hands over, brought to {eval_set: (snapshot, repeat, sample, stream, ...)}."""

    names: list[str]
    has_snapshots: bool
    has_repeats: bool

    @property
    def lead(self) -> int:
        return self.has_snapshots + self.has_repeats

    def _full(self, value: object, argument: str, rest: Sequence[tuple[str, ...]]) -> Array:
        """(snapshot, repeat, *rest) of one array; `rest` are the dimensions that it may have."""
        with fitting(argument):
            array = to_numpy(value, argument)
        lead = ("snapshot",) * self.has_snapshots + ("repeat",) * self.has_repeats
        if array.ndim not in [len(lead) + len(dims) for dims in rest]:
            able = " or ".join(f"({', '.join((*lead, *dims))})" for dims in rest)
            raise WaterjarError(f"{argument} has shape {array.shape}: expected {able}")
        if not self.has_repeats:
            array = np.expand_dims(array, int(self.has_snapshots))
        return array if self.has_snapshots else array[None]

    def _by_set(self, value: object, argument: str, rest: Sequence[tuple[str, ...]]) -> dict[str, Array]:
        given = value if isinstance(value, Mapping) else {ALONE: value}
        return {str(key): self._full(one, f"{argument}['{key}']", rest) for key, one in given.items()}

    def shared(self, argument: str, value: object, rest: tuple[str, ...]) -> dict[str, Array]:
        """{eval_set: (snapshot, repeat, sample, ...)} of what no stream owns."""
        return self._by_set(value, argument, [("sample", *rest)])

    def by_stream(
        self, argument: str, value: object, rest: tuple[str, ...], *, ragged: bool = False
    ) -> dict[str, Array]:
        """{eval_set: (snapshot, repeat, sample, stream, ...)}; `ragged` widths are filled up with NaN."""
        own = self._of_streams(argument, value)
        each = {name: self._by_set(own[name], f"{argument}['{name}']", [("sample", *rest)]) for name in self.names}
        return self._joined(argument, each, rest, ragged=ragged)

    def _of_streams(self, argument: str, value: object) -> Mapping[str, object]:
        if not isinstance(value, Mapping) or set(value) != set(self.names):
            told = list(value) if isinstance(value, Mapping) else type(value).__name__
            raise WaterjarError(f"{argument}: {told}; expected a mapping with each of the streams {self.names}")
        return value

    def _joined(
        self, argument: str, each: dict[str, dict[str, Array]], rest: tuple[str, ...], *, ragged: bool = False
    ) -> dict[str, Array]:
        first = self.names[0]
        found: dict[str, Array] = {}
        for name, own in each.items():
            if set(own) != set(each[first]):
                raise WaterjarError(
                    f"{argument}['{name}'] is of the sets {list(own)}, '{first}' of {list(each[first])}: "
                    "expected the same"
                )
        for key in each[first]:
            parts = [each[name][key] for name in self.names]
            if ragged:
                width = max(part.shape[-1] for part in parts)
                parts = [_filled(part.astype(_float(part)), -1, width) for part in parts]
            for name, part in zip(self.names, parts, strict=True):
                if part.shape != parts[0].shape:
                    hint = (
                        ". Streams that know different classes: give each a logit for every class, minus infinity for "
                        "those that it does not know"
                        if rest == ("class",) and part.shape[:-1] == parts[0].shape[:-1]
                        else ""
                    )
                    raise WaterjarError(
                        f"{argument}['{name}'] has shape {part.shape[2:]} on '{key}', '{first}' has "
                        f"{parts[0].shape[2:]}: expected the same{hint}"
                    )
            found[key] = np.stack(parts, axis=3)
        return found

    def routes(self, weights: object, index: object) -> dict[str, dict[str, Array]]:
        """Weights and targets of routes, (snapshot, repeat, sample, stream, slot, route)."""
        if weights is None:
            raise WaterjarError("route_index without routing: expected the weights of these routes, too")
        made = {"route_weight": self._routing("routing", weights)}
        if index is None:
            made["route_index"] = {
                key: np.broadcast_to(np.arange(one.shape[-1]), one.shape) for key, one in made["route_weight"].items()
            }
        else:
            made["route_index"] = self._routing("route_index", index)
        for key, one in made["route_index"].items():
            shape = made["route_weight"][key].shape if key in made["route_weight"] else ()
            if one.dtype.kind not in "iu" or one.shape != shape:
                raise WaterjarError(
                    f"route_index on '{key}': {one.dtype} {one.shape}; expected whole numbers {shape}, as routing has"
                )
            if one.size and not -1 <= one.min() <= one.max() < MOST_TARGETS:
                raise WaterjarError(
                    f"route_index on '{key}' goes from {one.min()} to {one.max()}: expected places that are counted "
                    f"from 0 on, fewer than {MOST_TARGETS}, and -1 for nowhere"
                )
        return made

    def _routing(self, argument: str, value: object) -> dict[str, Array]:
        able = [("sample", "route"), ("sample", "slot", "route")]

        def slotted(parts: dict[str, Array]) -> dict[str, Array]:
            return {key: one[:, :, :, None] if one.ndim == 4 else one for key, one in parts.items()}

        if isinstance(value, Mapping) and set(value) == set(self.names):
            each = {name: slotted(self._by_set(value[name], f"{argument}['{name}']", able)) for name in self.names}
            return self._joined(argument, each, ("slot", "route"))
        gate = slotted(self._by_set(value, argument, able))
        return {key: np.repeat(one[:, :, :, None], len(self.names), axis=3) for key, one in gate.items()}

    def lacks_samples(self, value: object) -> bool:
        """Whether what is given by stream has no dimension sample, and no evaluation sets."""
        one = next(iter(self._of_streams("affinities", value).values()))
        return not isinstance(one, Mapping) and to_numpy(one, "affinities").ndim == self.lead + 1

    def by_name(self, argument: str, value: object, dim: str) -> Array:
        """(snapshot, repeat, stream, ...) of what no input changes."""
        own = self._of_streams(argument, value)
        parts = [self._full(own[name], f"{argument}['{name}']", [(dim,)]) for name in self.names]
        for name, part in zip(self.names, parts, strict=True):
            if part.shape != parts[0].shape:
                raise WaterjarError(
                    f"{argument}['{name}'] has shape {part.shape[2:]}, '{self.names[0]}' has {parts[0].shape[2:]}: "
                    "expected the same"
                )
        return np.stack(parts, axis=2)

    def sets_of(self, arrays: Mapping[str, Mapping[str, Array]]) -> tuple[list[str], dict[str, int]]:
        """The evaluation sets, and how many samples each has."""
        sizes = {key: one.shape[2] for key, one in arrays["logits"].items()}
        for name, parts in arrays.items():
            if set(parts) != set(sizes):
                raise WaterjarError(f"{name} is of the sets {list(parts)}; expected {list(sizes)}, as the streams")
            for key, one in parts.items():
                if one.shape[2] != sizes[key]:
                    raise WaterjarError(f"{name} has {one.shape[2]} samples of '{key}'; expected {sizes[key]}")
        if not all(sizes.values()):
            raise WaterjarError(f"the set '{min(sizes, key=lambda key: sizes[key])}' has no sample: leave it out")
        return list(sizes), sizes

    def labels(self, value: object, sets: list[str], sizes: Mapping[str, int], classes: int) -> Array:
        """(eval_set, sample), -1 where a set has no sample, or a sample no label."""
        given = value if isinstance(value, Mapping) else {ALONE: value}
        if set(given) != set(sets):
            raise WaterjarError(f"labels are of the sets {list(given)}; expected {sets}, as the streams")
        found = np.full((len(sets), max(sizes.values())), -1, np.int64)
        for place, key in enumerate(sets):
            one = to_numpy(given[key], f"labels['{key}']")
            if one.dtype.kind not in "iu" or one.shape != (sizes[key],):
                raise WaterjarError(
                    f"labels['{key}'] are {one.dtype} {one.shape}; expected {sizes[key]} whole numbers, one a sample"
                )
            if one.size and not -1 <= one.min() <= one.max() < classes:
                raise WaterjarError(f"labels['{key}'] go from {one.min()} to {one.max()}; expected 0 to {classes - 1}")
            found[place, : sizes[key]] = one
        return found

    def stacked(self, key: str, parts: Mapping[str, Array], sets: list[str], sizes: Mapping[str, int]) -> Array:
        """(snapshot, repeat, eval_set, sample, ...), filled up to the largest set."""
        largest = max(sizes.values())
        shapes = {name: (one.shape[:2], one.shape[3:]) for name, one in parts.items()}
        if len(set(shapes.values())) > 1:
            raise WaterjarError(f"{key} has other shapes on other sets: {shapes}; expected the same but for samples")
        return np.stack([_filled(parts[name], 2, largest) for name in sets], axis=2)

    def counts(self, shots: Mapping[str, Array]) -> tuple[int, int]:
        """How many snapshots and repeats there are, of which everything has as many."""
        found = {key: (one.shape[0], one.shape[1]) for key, one in shots.items()}
        first = found["logits"]
        for key, own in found.items():
            if own != first:
                raise WaterjarError(f"{key} has (snapshot, repeat) = {own}; expected {first}, as the streams")
        if not all(first):
            raise WaterjarError(f"streams have (snapshot, repeat) = {first}: expected at least one of each")
        return first


def _float(array: Array) -> np.dtype[Any]:
    return array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)


def _filled(array: Array, axis: int, size: int) -> Array:
    """Filled up along an axis: with NaN, whole numbers with -1."""
    short = size - array.shape[axis]
    if not short:
        return array
    whole = array.dtype.kind in "iu"
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, short)
    return np.pad(array.astype(np.int64 if whole else _float(array)), widths, constant_values=-1 if whole else np.nan)
