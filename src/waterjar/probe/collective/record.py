"""Recording a live collective: what its streams say at an epoch becomes one snapshot of /streams of a run."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.probe.collective.coalitions import MOST_EXACT, Ticks, coalitions, coalitions_of, label_of, places_of
from waterjar.probe.collective.gathered import Gathered, gathered
from waterjar.probe.collective.gradients import gradient_contributions
from waterjar.probe.collective.live import LiveCollective, absences_of, size_of
from waterjar.probe.collective.samples import Samples, samples_of
from waterjar.run.recorder import Recorder
from waterjar.run.root import read_root
from waterjar.run.schema import ABSENT

Array = NDArray[Any]
_SAID: weakref.WeakKeyDictionary[Recorder, set[str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Recorded:
    """What a call of `record_collective` wrote."""

    arrays: tuple[str, ...]
    """Names in /streams."""
    passed_over: Mapping[str, str]
    """What the model cannot tell, or only so -> why, in one sentence."""


def collective_labels(
    collective: LiveCollective, absences: Sequence[str] | str = (), *, orders: int | None = None, seed: int = 0
) -> dict[str, list[str]]:
    """The names along `stream` and `coalition`, for `Recorder(labels=...)`.

    >>> import torch
    >>> from waterjar.probe.collective import adapt
    >>> pair = adapt([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)], names=["a", "b"])
    >>> collective_labels(pair, ["removed"])
    {'stream': ['a', 'b'], 'coalition': ['removed:01', 'removed:10', 'removed:11']}
    """
    labels = {"stream": list(collective.streams)}
    if absences:
        labels["coalition"] = [
            label_of(how, row)
            for how in absences_of(absences)
            for row in coalitions_of(len(collective.streams), how, orders, seed)
        ]
    return labels


def record_collective(
    recorder: Recorder,
    collective: LiveCollective | Sequence[LiveCollective],
    sets: Mapping[str, Any],
    *,
    absences: Sequence[str] | str = (),
    gradients: bool = False,
    orders: int | None = None,
    batch_size: int = 256,
    seed: int = 0,
) -> Recorded:
    """Record at the last logged step what the streams of a collective say about some sets of samples.

    Called in each epoch of a training loop of your own, it gives the emergence curve, and every other diagnostic beside
    its value at initialisation. Sets may differ in size: what is shorter is filled up, with the label -1. The model is
    in evaluation mode meanwhile and left as it was: modes, gradients, buffers, random numbers.

    Parameters
    ----------
    recorder : opened with `labels=collective_labels(collective, absences)` and `eval_sets=list(sets)`.
    collective : one, or one for each repeat of the run.
    sets : name -> (inputs, labels), a data set or a loader; the same samples each time.
    absences : removed, zeroed, resampled: how streams are absent in coalitions, for Shapley values; none by default.
    gradients : whether to record the norm of d loss / d pooled output.

    >>> import tempfile, torch, waterjar
    >>> from waterjar.probe.collective import adapt
    >>> nets = [torch.nn.Linear(2, 2) for _ in range(2)]
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> y = (x[:, 0] > x[:, 1]).long()
    >>> pair, sgd = adapt(nets, names=["a", "b"]), torch.optim.SGD([p for n in nets for p in n.parameters()], lr=1.0)
    >>> path = tempfile.mkdtemp() + "/run"
    >>> with waterjar.Recorder(path, {}, eval_sets=["test"], labels=collective_labels(pair)) as recorder:
    ...     for epoch in range(4):
    ...         loss = torch.nn.functional.cross_entropy(pair.logits(x), y)
    ...         step = recorder.log(epoch=epoch, train={"loss": loss.item()})
    ...         told = record_collective(recorder, pair, {"test": (x, y)})
    ...         sgd.zero_grad(); loss.backward(); sgd.step()
    >>> waterjar.open_run(path)["streams"]["logits"].sizes["snapshot"]
    4
    """
    each = [collective] if isinstance(collective, LiveCollective) else list(collective)
    absences = absences_of(absences)
    check_recorder(recorder, each, absences, orders, seed)
    data = read_sets(sets)
    found = collected(
        each,
        data,
        absences=absences,
        gradients=gradients,
        orders=orders,
        batch_size=batch_size,
        seed=seed,
    )
    record_once(recorder, each, data, found.passed_over)
    record_orders(recorder, each, absences, orders, seed)
    recorder.snapshot(streams=found.arrays)
    say(recorder, found.passed_over)
    return Recorded(tuple(found.arrays), found.passed_over)


@dataclass(frozen=True)
class Collected:
    """What `Recorder.snapshot(streams=...)` takes, and what it lacks."""

    arrays: dict[str, object]
    passed_over: dict[str, str]


def read_sets(sets: Mapping[str, Any]) -> dict[str, Samples]:
    """Name -> samples."""
    if not sets:
        raise WaterjarError("sets is empty: expected name -> (inputs, labels), a data set or a loader")
    return {name: samples_of(one, f"set '{name}'") for name, one in sets.items()}


def collected(
    each: Sequence[LiveCollective],
    data: Mapping[str, Samples],
    *,
    absences: Sequence[str],
    gradients: bool,
    orders: int | None,
    batch_size: int,
    seed: int,
    only: Sequence[str] | None = None,
    progress: Ticks | None = None,
) -> Collected:
    """All arrays of a snapshot, one collective for each repeat. Coalitions and gradients are of `only` these sets."""
    longest = max(map(len, data.values()))
    found = {name: [gathered(one, samples, batch_size, seed) for one in each] for name, samples in data.items()}
    check_labels(data, next(iter(found.values()))[0].arrays["collective_logits"].shape[-1])
    arrays = _snapshot(found, longest)
    passed_over = dict(next(iter(found.values()))[0].passed_over)
    passed_over |= _not_numbers(each[0].streams, found)
    prints = [one.fingerprints() for one in each]
    if all(one is not None for one in prints):
        arrays["fingerprint"] = np.stack([one.cpu().numpy() for one in prints if one is not None])
    else:
        passed_over["fingerprint"] = each[0].cannot().get("fingerprint", "its streams have no fingerprints")
    parts = {name: samples for name, samples in data.items() if only is None or name in only}
    if gradients:
        try:
            norms = {
                name: [gradient_contributions(one, samples, batch_size=batch_size, seed=seed) for one in each]
                for name, samples in parts.items()
            }
            arrays["gradient_norm"] = _by_set(norms, data, longest)
        except WaterjarError as error:  # said, and costs nothing else
            passed_over["gradient_norm"] = str(error)
    if absences:
        right: dict[str, list[Array]] = {name: [] for name in parts}
        likely: dict[str, list[Array]] = {name: [] for name in parts}
        for name, samples in parts.items():
            for one in each:
                games = [
                    coalitions(
                        one,
                        samples,
                        how,
                        orders=orders,
                        batch_size=batch_size,
                        seed=seed,
                        progress=progress,
                    )
                    for how in absences
                ]
                right[name].append(np.concatenate([game.correct for game in games], axis=1).astype(np.uint8))
                logs = np.concatenate([game.log_likelihood for game in games], axis=1)
                likely[name].append(logs.astype(np.float32))
        arrays["coalition_correct"] = _by_set(right, data, longest)
        arrays["coalition_log_likelihood"] = _by_set(likely, data, longest)
    return Collected(arrays, passed_over)


def _not_numbers(streams: Sequence[str], found: Mapping[str, Sequence[Gathered]]) -> dict[str, str]:
    """Who says NaN, in one sentence."""
    said = [one.arrays for each in found.values() for one in each]
    own = [one["logits"] for one in said if "logits" in one]
    dead = [name for place, name in enumerate(streams) if any(np.isnan(one[:, place]).any() for one in own)]
    if any(np.isnan(one["collective_logits"]).any() for one in said):
        dead.append("the collective")
    if not dead:
        return {}
    return {"not_a_number": f"logits of {', '.join(dead)} are NaN: what is made of them is missing"}


def check_labels(data: Mapping[str, Samples], classes: int) -> None:
    """Refuse labels of classes that the collective does not have."""
    for name, samples in data.items():
        largest = int(samples.labels.max())
        if largest >= classes:
            raise WaterjarError(
                f"labels of set '{name}' go up to {largest}, and the collective has {classes} classes: expected 0 to "
                f"{classes - 1}"
            )


def check_recorder(
    recorder: Recorder, each: Sequence[LiveCollective], absences: Sequence[str], orders: int | None, seed: int
) -> None:
    """Refuse a recorder with another number of repeats, or without the names of streams and coalitions."""
    if len(each) != recorder.repeats:
        raise WaterjarError(f"{len(each)} collectives: expected one for each of {recorder.repeats} repeats of the run")
    if any(one.streams != each[0].streams for one in each):
        raise WaterjarError(f"repeats have the streams {[one.streams for one in each]}: expected the same in all")
    for how in absences:
        each[0].check(how)
    wanted = collective_labels(each[0], absences, orders=orders, seed=seed)
    there = read_root(recorder.path)["attributes"].get("labels", {})
    for dim, names in wanted.items():
        if there.get(dim) != names:
            raise WaterjarError(
                f"the recorder has {'other' if dim in there else 'no'} names along '{dim}': open it with "
                "Recorder(..., labels=collective_labels(collective, absences)), of the same settings as here"
            )


def _snapshot(found: Mapping[str, Sequence[Gathered]], longest: int) -> dict[str, object]:
    """Array of /streams -> {eval_set: (repeat, sample, ...)}, or (repeat, stream, anchor)."""
    first = next(iter(found.values()))
    made: dict[str, object] = {
        name: {key: np.stack([_filled(one.arrays[name], longest, name) for one in each]) for key, each in found.items()}
        for name in first[0].arrays
        if all(name in one.arrays for each in found.values() for one in each)
    }
    for name in first[0].static:
        made[name] = np.stack([one.static[name] for one in first])
    return made


def _filled(array: Array, longest: int, name: str) -> Array:
    """(sample, ...) -> as many samples as the largest set has."""
    lack = longest - len(array)
    if not lack:
        return array
    fill = -1 if name in ("route_index", "label", "sample_index") else ABSENT if array.dtype == np.uint8 else np.nan
    return np.concatenate([array, np.full((lack, *array.shape[1:]), fill, array.dtype)])


def _by_set(parts: Mapping[str, Sequence[Array]], data: Mapping[str, Samples], longest: int) -> dict[str, Array]:
    """{eval_set: (repeat, sample, ...)} of all sets; of those that were left out nobody looked."""
    like = next(iter(parts.values()))
    nobody = [one[:0] for one in like]
    return {name: np.stack([_filled(one, longest, "") for one in parts.get(name, nobody)]) for name in data}


def record_once(
    recorder: Recorder, each: Sequence[LiveCollective], data: Mapping[str, Samples], passed_over: dict[str, str]
) -> None:
    """Labels and numbers of parameters: the same every time."""
    repeats, longest = range(len(each)), max(map(len, data.values()))
    labels = {name: np.stack([_filled(one.labels, longest, "label") for _ in repeats]) for name, one in data.items()}
    places = {
        name: np.stack([_filled(np.arange(len(one)), longest, "label") for _ in repeats]) for name, one in data.items()
    }
    recorder.once("probe_samples", label=labels, sample_index=places)
    sizes: dict[str, object] = {"parameters": np.array([size_of(one.module) for one in each])}
    by_stream = [one.stream_parameters() for one in each]
    if all(one is not None for one in by_stream):
        sizes["stream_parameters"] = np.array([[own[name] for name in each[0].streams] for own in by_stream if own])
    else:
        passed_over["stream_parameters"] = "which parameters belong to which stream cannot be told"
    recorder.once("streams", **sizes)
    trained = np.array([size_of(one.module, trained=True) for one in each])
    try:
        recorder.once("streams", trainable_parameters=trained)
    except WaterjarError as error:  # some were frozen, or set free, since the first epoch
        passed_over["trainable_parameters"] = f"as at the first recording: {error}"


def record_orders(
    recorder: Recorder, each: Sequence[LiveCollective], absences: Sequence[str], orders: int | None, seed: int
) -> None:
    """The orders that coalitions of many streams are of: how these differ is the error of Shapley values."""
    streams = len(each[0].streams)
    if absences and streams > MOST_EXACT:
        recorder.once("streams", coalition_order=np.stack([places_of(streams, orders, seed)] * len(each)))


def say(recorder: Recorder, passed_over: Mapping[str, str]) -> None:
    """Each sentence once in a run's events, not at every epoch."""
    said = _SAID.setdefault(recorder, set())
    for name, why in passed_over.items():
        if name not in said:
            said.add(name)
            recorder.event("collective", f"{name}: {why}")
