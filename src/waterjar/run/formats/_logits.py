"""Logits of several streams, from anywhere, become a run: an ensemble, a mixture of experts, a routed collective."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.combining import RULES, are_probabilities, combine, log_probabilities
from waterjar.run.coordinates import finite, names_of, whole_numbers
from waterjar.run.disk import refuse_taken
from waterjar.run.formats._given import Given
from waterjar.run.identity import digest
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder

Array = NDArray[Any]
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
    given = Given(names, epochs is not None, numbers is not None)
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
