"""Logits of several streams, from anywhere, become a run: an ensemble, a mixture of experts, a routed collective."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.arrays import fitting, to_numpy
from waterjar.run.combining import RULES, are_probabilities, combine, log_probabilities
from waterjar.run.coordinates import finite, names_of, whole_numbers
from waterjar.run.disk import refuse_taken
from waterjar.run.identity import digest
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder
from waterjar.run.schema import MOST_TARGETS

Array = NDArray[Any]
_ALONE = "test"
"""The evaluation set of arrays that do not say theirs."""
_TRAINED = 1.0
"""The epoch of a snapshot that does not say its own: it is no claim that nothing was trained, as epoch 0 is."""


def from_logits(
    path: str | os.PathLike[str],
    streams: Mapping[str, object],
    *,
    collective: object = None,
    labels: object = None,
    isolated: Mapping[str, object] | None = None,
    pooled: Mapping[str, object] | None = None,
    routing: object = None,
    route_index: object = None,
    fingerprints: Mapping[str, object] | None = None,
    affinities: Mapping[str, object] | None = None,
    gradient_norms: Mapping[str, object] | None = None,
    parameters: int | None = None,
    trainable_parameters: int | None = None,
    stream_parameters: Mapping[str, int] | None = None,
    epochs: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    config: object = None,
    probabilities: bool | None = None,
) -> Run:
    """Write recorded outputs of a collective as a sealed run and open it; no model is needed.

    Each array is (sample, class), or {eval_set: (sample, class)}; without a name the set is `test`. Sets may have other
    sizes: what is shorter is filled up with NaN, and with the label -1. With `seeds` all of these have a first
    dimension repeat, with `epochs` a first dimension snapshot before it; labels have neither. Everything is checked
    before anything is written.

    Parameters
    ----------
    streams : name of the stream -> its logits. A class that a stream does not know has the logit minus infinity.
    collective : logits of the collective; or a rule that makes them of those of its streams: `mean_probability`,
        `mean_logit` or `vote`. Left out, the setting `rule` of the diagnosis says how.
    labels : (sample,), whole numbers from 0 on, -1 where there is none; the same for all seeds and epochs, which are of
        the same samples.
    isolated : logits of each stream with no other one around, where those of `streams` see others.
    pooled : name -> features (sample, unit) of each stream, for linear probes; widths may differ.
    routing : name -> weights (sample, route) or (sample, slot, route). One array, not by stream, is the one gate of a
        mixture of experts, and counts for all streams.
    route_index : where these routes go, of the same shapes; by default route k goes to target k.
    fingerprints : name -> (component,). affinities : name -> (anchor,), or (sample, anchor) where the input matters.
    gradient_norms : name -> (sample,), norm of the gradient of the loss by the stream's pooled output.
    parameters, trainable_parameters : how many the whole has. stream_parameters : name -> how many of them it has.
    epochs : when each snapshot was taken, in order; the untrained network is epoch 0. Left out, there is one snapshot,
        of a network that is taken for trained (epoch 1).
    seeds : of the training runs along the dimension repeat, one each; left out, there is one, of seed 0.
    probabilities : whether streams, collective and isolated are probabilities, whose logs are taken. Left out, arrays
        that look like some are refused; False takes them for logits all the same.

    >>> import tempfile
    >>> run = from_logits(
    ...     tempfile.mkdtemp() + "/run",
    ...     {"left": [[2.0, 0.0], [1.0, 0.0]], "right": [[0.0, 1.0], [0.0, 2.0]]},
    ...     collective="mean_probability",
    ...     labels=[0, 1],
    ... )
    >>> run["streams"].collective_logits.values.argmax(-1).ravel().tolist()
    [0, 1]
    """
    refuse_taken(path)
    names = _stream_names(streams)
    times = [_TRAINED] if epochs is None else _times(epochs)
    numbers = None if seeds is None else whole_numbers("seeds", seeds)
    given = _Given(names, epochs is not None, numbers is not None)
    arrays: dict[str, dict[str, Array]] = {"logits": given.by_stream("streams", streams, ("class",))}
    arrays["logits"] = _logs("streams", arrays["logits"], names, probabilities)
    width = _classes(arrays["logits"], classes)
    if isinstance(collective, str):
        if collective not in RULES:
            raise unknown_name("collective", collective, RULES)
        arrays["collective_logits"] = {key: combine(one, collective) for key, one in arrays["logits"].items()}
    elif collective is not None:
        arrays["collective_logits"] = given.shared("collective", collective, ("class",))
        arrays["collective_logits"] = _logs("collective", arrays["collective_logits"], None, probabilities)
    more = {"isolated": ("isolated_logits", isolated, ("class",)), "pooled": ("pooled", pooled, ("unit",)),
            "gradient_norms": ("gradient_norm", gradient_norms, ())}  # fmt: skip
    for argument, (key, value, rest) in more.items():
        if value is not None:
            arrays[key] = given.by_stream(argument, value, rest, ragged=argument == "pooled")
            if argument == "isolated":
                arrays[key] = _logs(argument, arrays[key], names, probabilities)
    if routing is not None or route_index is not None:
        arrays |= given.routes(routing, route_index)
    static: dict[str, Array] = {}
    if fingerprints is not None:
        static["fingerprint"] = given.by_name("fingerprints", fingerprints, "component")
    if affinities is not None and given.lacks_samples(affinities):
        static["anchor_affinity"] = given.by_name("affinities", affinities, "anchor")
    elif affinities is not None:
        arrays["affinity"] = given.by_stream("affinities", affinities, ("anchor",))
    sets, sizes = given.sets_of(arrays)
    _check_classes(arrays, width)
    told = None if labels is None else given.labels(labels, sets, sizes, width)
    shots = {key: given.stacked(key, parts, sets, sizes) for key, parts in arrays.items()} | static
    snapshots, repeats = given.counts(shots)
    _check_counts(times, numbers, (snapshots, repeats))
    once = _once(names, repeats, parameters, trainable_parameters, stream_parameters)
    content = {key: [list(one.shape), one.tobytes().hex()] for key, one in {**shots, **once}.items()}
    source = {"source": "logits", "content": digest({"sets": sets, "streams": names, **content})}
    with Recorder(
        path,
        source if config is None else config,
        seeds=numbers,
        eval_sets=sets,
        eval_sizes=sizes,
        classes=classes,
        labels={"stream": names},
        summary=False,
    ) as recorder:
        if told is not None:
            recorder.once("probe_samples", label=np.broadcast_to(told, (repeats, *told.shape)))
        if once:
            recorder.once("streams", **once)
        for place, epoch in enumerate(times):
            recorder.log(epoch=epoch, snapshot={"streams": {key: one[place] for key, one in shots.items()}})
    return open_run(path)


def _stream_names(streams: object) -> list[str]:
    if not isinstance(streams, Mapping):
        raise WaterjarError(f"streams is a {type(streams).__name__}: expected a mapping name of a stream -> its logits")
    if not streams:
        raise WaterjarError("streams={}: expected at least one stream, name -> its logits")
    for name in streams:
        if not isinstance(name, str):
            raise WaterjarError(
                f"streams: {name!r} is a {type(name).__name__}: expected names that are text, as '{name}'"
            )
    return names_of("streams", list(streams))


def _logs(
    argument: str, parts: dict[str, Array], names: Sequence[str] | None, probabilities: bool | None
) -> dict[str, Array]:
    """Logits (..., stream, class), or (..., class), by set, of what was said to be probabilities, logits or neither.

    What is softmaxed twice is another answer, and no number would show it.
    """
    if probabilities is False:
        return parts
    for place, name in enumerate(names or [""]):
        where = f"{argument}['{name}']" if names else argument
        each = {key: are_probabilities(one[..., place, :] if names else one) for key, one in parts.items()}
        if not probabilities and all(each.values()):
            raise WaterjarError(
                f"{where}: these look like probabilities (0 or more, and every row sums to 1), not like logits: pass "
                "np.log(p), or probabilities=True; probabilities=False, if they are logits"
            )
        if probabilities and not all(each.values()):
            key = next(key for key, able in each.items() if not able)
            raise WaterjarError(f"{where} on '{key}': expected probabilities, 0 or more, and 1 in sum over classes")
    return {key: log_probabilities(one) for key, one in parts.items()} if probabilities else parts


def _times(epochs: object) -> list[float]:
    """Epochs of snapshots, which go forwards."""
    if isinstance(epochs, str) or not isinstance(epochs, Iterable):
        raise WaterjarError(f"epochs={epochs!r}: expected a list of numbers, one a snapshot")
    times = [finite(f"epochs[{i}]", epoch) for i, epoch in enumerate(epochs)]
    if any(time < 0 for time in times) or times != sorted(set(times)):
        raise WaterjarError(f"epochs={times}: expected numbers from 0 on, in order, each once")
    return times


def _classes(logits: Mapping[str, Array], classes: Sequence[str] | None) -> int:
    """How many classes streams know, which have as many names where they have any."""
    widths = {key: one.shape[-1] for key, one in logits.items()}
    width = next(iter(widths.values()), 0)
    if set(widths.values()) != {width} or not width:
        raise WaterjarError(f"streams have {widths} classes by set: expected the same in all sets, at least one")
    if classes is not None and len(names_of("classes", classes)) != width:
        raise WaterjarError(f"classes={list(classes)}: expected {width} names, as many as the logits have classes")
    return width


def _check_classes(arrays: Mapping[str, Mapping[str, Array]], width: int) -> None:
    """Refuse logits of other classes than those of the streams."""
    for argument, key in (("collective", "collective_logits"), ("isolated", "isolated_logits")):
        for name, one in arrays.get(key, {}).items():
            if one.shape[-1] != width:
                raise WaterjarError(f"{argument} has {one.shape[-1]} classes on '{name}': expected {width}, as streams")


def _check_counts(times: list[float], numbers: list[int] | None, counts: tuple[int, int]) -> None:
    """Refuse other numbers of epochs or seeds than the logits have snapshots and repeats."""
    for argument, listed, count in zip(("epochs", "seeds"), (times, numbers), counts, strict=True):
        if listed is not None and len(listed) != count:
            raise WaterjarError(f"{argument}={listed}: expected {count}, as many as the logits have")


def _once(
    names: list[str], repeats: int, parameters: int | None, trainable: int | None, by_stream: Mapping[str, int] | None
) -> dict[str, Array]:
    """What does not change in training."""
    found: dict[str, Array] = {}
    for key, number in (("parameters", parameters), ("trainable_parameters", trainable)):
        if number is not None:
            found[key] = np.full(repeats, _counted(key, [number])[0])
    if {"parameters", "trainable_parameters"} <= set(found) and found["trainable_parameters"][0] > found["parameters"][
        0
    ]:
        raise WaterjarError(
            f"trainable_parameters={trainable} of parameters={parameters}: expected at most as many as there are"
        )
    if by_stream is not None:
        if set(by_stream) != set(names):
            raise WaterjarError(f"stream_parameters are of {list(by_stream)}; expected one of each of {names}")
        each = _counted("stream_parameters", [by_stream[name] for name in names])
        found["stream_parameters"] = np.tile(np.array(each, np.int64), (repeats, 1))
    return found


def _counted(argument: str, values: Sequence[object]) -> list[int]:
    """Numbers of parameters, from 0 on."""
    numbers = whole_numbers(argument, values)
    if min(numbers) < 0:
        raise WaterjarError(f"{argument}={min(numbers)}: expected a number of parameters, from 0 on")
    return numbers


@dataclass(frozen=True)
class _Given:
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
        given = value if isinstance(value, Mapping) else {_ALONE: value}
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
        given = value if isinstance(value, Mapping) else {_ALONE: value}
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
