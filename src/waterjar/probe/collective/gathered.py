"""What a collective says about a whole set of samples, batch after batch, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.collective.live import LiveCollective, Outputs, Streams, refuse_probabilities
from waterjar.probe.collective.samples import Samples
from waterjar.probe.collective.still import measured

Array = NDArray[Any]

_BY_STREAM: Mapping[str, tuple[str, float]] = {
    "logits": ("individual", -np.inf),
    "isolated_logits": ("isolated", -np.inf),
    "pooled": ("pooled", np.nan),
    "route_index": ("route_index", -1),
    "route_weight": ("route_weight", 0.0),
}
"""Array of /streams -> field of the outputs, and what fills a stream up that has fewer classes, units or routes."""

_DIMS = {
    "logits": ("sample", "class"),
    "isolated_logits": ("sample", "class"),
    "pooled": ("sample", "unit"),
    "route_index": ("sample", "slot", "route"),
    "route_weight": ("sample", "slot", "route"),
}

_WHY = {
    "logits": "the model does not tell the logits of single streams",
    "isolated_logits": "a stream cannot be asked without the others",
    "pooled": "the model tells no pooled features, and has no classifier of each stream that would be given some",
    "routing": "the model tells no routes",
    "affinity": "its streams have no anchors",
}


_ALONE = 1e-3
"""How much of itself a logit may change by rounding, where other kernels are used for one sample than for many."""


@dataclass
class Gathered:
    """Arrays of one set of samples, by their names in /streams: (sample, stream, ...), (sample, class)."""

    arrays: dict[str, Array]
    static: dict[str, Array] = field(default_factory=dict)
    """Affinities that no input changes: (stream, anchor)."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """What there is not, or only so -> why, in one sentence."""


def gathered(collective: LiveCollective, samples: Samples, batch_size: int = 256, seed: int = 0) -> Gathered:
    """Ask the collective about all samples, in evaluation mode; the model is left as it was.

    >>> from waterjar.probe.collective import adapt
    >>> pair = adapt([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)])
    >>> found = gathered(pair, Samples(torch.zeros(5, 3), np.zeros(5, np.int64)))
    >>> {name: array.shape for name, array in found.arrays.items()}
    {'collective_logits': (5, 2), 'logits': (5, 2, 2), 'isolated_logits': (5, 2, 2), 'pooled': (5, 2, 3)}
    """
    parts: dict[str, list[Array]] = {}
    static: dict[str, Array] = {}
    misshapen: dict[str, str] = {}
    alone = 0.0
    with measured(collective.module, seed) as device:
        for rows in samples.batches(batch_size):
            outputs = collective.outputs(samples.rows(rows, device))
            if outputs.collective.ndim != 2 or len(outputs.collective) != len(rows):
                raise WaterjarError(
                    f"the collective gives {tuple(outputs.collective.shape)} for {len(rows)} inputs: expected logits "
                    "(sample, class)"
                )
            if not rows[0] and len(rows) > 1:  # the first sample again, without the others of its batch
                alone = _apart(collective.logits(samples.rows(rows[:1], device)), outputs.collective[:1])
            found, static = _of_batch(outputs, collective.streams, misshapen)
            for name, array in found.items():
                parts.setdefault(name, []).append(array)
    arrays = {name: np.concatenate(each) for name, each in parts.items() if name not in misshapen}
    if not collective.are_logits:
        _check_logits(collective, arrays)
    _widen_collective(arrays)
    told = {**_passed_over(collective, arrays, static), **misshapen}
    if {"route_index", "route_weight"} & misshapen.keys():
        arrays = {name: one for name, one in arrays.items() if not name.startswith("route_")}
    if alone > _ALONE:
        told["batches"] = (
            f"an answer depends on which samples share its batch (a logit changes by {alone:.1%} alone): numbers hold "
            f"for batches of {batch_size}"
        )
    return Gathered(arrays, static, told)


def _check_logits(collective: LiveCollective, arrays: Mapping[str, Array]) -> None:
    """Refuse probabilities: their softmax is another answer, and no number would show it."""
    streams = arrays.get("logits", np.empty((0, 0, 0)))
    each = {f"stream '{name}'": streams[:, place] for place, name in enumerate(collective.streams) if streams.size}
    for name, one in {**each, "the collective": arrays["collective_logits"]}.items():
        refuse_probabilities(name, one)


def _apart(a: Tensor, b: Tensor) -> float:
    """The largest difference of logits, as a share of the largest logit (of 1, if that is smaller)."""
    return float((a - b).nan_to_num(0.0, 0.0, 0.0).abs().max() / b.nan_to_num(0.0, 0.0, 0.0).abs().max().clamp(min=1.0))


def _of_batch(
    outputs: Outputs, streams: Sequence[str], misshapen: dict[str, str]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Arrays, and those that no input changes; what has another shape than expected is left out and said."""
    count = len(outputs.collective)
    arrays = {"collective_logits": _numbers(outputs.collective)}
    static: dict[str, Array] = {}
    for name, (where, fill) in _BY_STREAM.items():
        given: Streams | None = getattr(outputs, where)
        if given is not None and _has_shape(name, given, count, _DIMS[name], misshapen):
            arrays[name] = stacked([_numbers(given[stream]) for stream in streams], fill, name)
    if outputs.affinity is not None:
        each = [_numbers(outputs.affinity[stream]) for stream in streams]
        if all(one.ndim == 1 for one in each):
            static["anchor_affinity"] = stacked([one[None] for one in each], np.nan, "affinity")[0]
        elif _has_shape("affinity", outputs.affinity, count, ("sample", "anchor"), misshapen):
            wide = [np.broadcast_to(one, (count, one.shape[-1])) for one in each]
            arrays["affinity"] = stacked(wide, np.nan, "affinity")
    return arrays, static


def _has_shape(name: str, given: Streams, count: int, dims: tuple[str, ...], misshapen: dict[str, str]) -> bool:
    """Whether all streams have these dimensions, as many samples as the batch; else it is said."""
    shapes = {stream: tuple(one.shape) for stream, one in given.items()}
    may_lack = name == "affinity"  # what no input changes may stand beside what it does
    if all((len(one) == len(dims) and one[0] == count) or (may_lack and len(one) == 1) for one in shapes.values()):
        return True
    misshapen[name] = f"streams give the shapes {shapes} for {count} inputs: expected ({', '.join(dims)})"
    return False


def stacked(each: Sequence[Array], fill: float, name: str) -> Array:
    """Streams side by side, (sample, ...) each -> (sample, stream, ...); what is narrower is filled up.

    >>> stacked([np.zeros((1, 2)), np.zeros((1, 3))], np.nan, "pooled")
    array([[[ 0.,  0., nan],
            [ 0.,  0.,  0.]]])
    """
    if len({one.ndim for one in each}) > 1:
        raise WaterjarError(
            f"{name}: streams have the shapes {[one.shape for one in each]}: expected as many dimensions"
        )
    widest = np.max([one.shape[1:] for one in each], axis=0, initial=0)
    made = np.full((len(each[0]), len(each), *widest), fill, np.result_type(*each))
    for place, one in enumerate(each):
        where: Any = (slice(None), place, *(slice(size) for size in one.shape[1:]))
        made[where] = one
    return made


def _widen_collective(arrays: dict[str, Array]) -> None:
    """Streams and collective have the same classes; one that lacks some finds them impossible."""
    names = [name for name in ("collective_logits", "logits", "isolated_logits") if name in arrays]
    widest = max(arrays[name].shape[-1] for name in names)
    for name in names:
        lack = widest - arrays[name].shape[-1]
        if lack:
            room = [(0, 0)] * (arrays[name].ndim - 1) + [(0, lack)]
            arrays[name] = np.pad(arrays[name], room, constant_values=-np.inf)


def _passed_over(
    collective: LiveCollective, arrays: Mapping[str, Array], static: Mapping[str, Array]
) -> dict[str, str]:
    """One sentence for everything that there is not; the adapter's own where it has one."""
    there = {*arrays, *(["affinity"] if {"affinity", "anchor_affinity"} & {*arrays, *static} else [])}
    if "route_weight" in there:
        there.add("routing")
    told = collective.cannot()
    return {name: told.get(name, why) for name, why in _WHY.items() if name not in there}


def _numbers(tensor: Tensor) -> Array:
    found = tensor.detach().cpu()
    return np.asarray((found.float() if found.dtype == torch.bfloat16 else found).numpy())
