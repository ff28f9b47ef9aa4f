"""Dead networks: what one is, and when a run says so in its events.

A network is dead where it answers every image of an evaluation set alike, or where every gradient that was measured
since the last evaluation was zero although it does not answer all training images rightly. Either is a number like any
other in a run (an accuracy at chance, a norm of 0); as an event it is seen. Nothing here changes weights or generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

DEAD, ALIVE = "dead_network", "network_alive_again"
"""Kinds of events."""
ROUNDING = 1e-6
"""Logits this close, as a share of the largest, are alike: sums of float32 in another order differ by less."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Signs:
    """What one evaluation tells of the learner's network."""

    alike: Mapping[str, Flags] = field(default_factory=dict)
    """Evaluation set -> (repeat,): whether all of its images get the same logits (`answers_alike`)."""
    no_gradient: Flags | None = None
    """(repeat,): see `without_gradient`; None where nothing was trained since the last evaluation."""


class Notice(NamedTuple):
    """What a run is told, see `Recorder.event`."""

    kind: str
    message: str
    level: str
    repeat: int


def answers_alike(lowest: ArrayLike, highest: ArrayLike, images: int) -> Flags:
    """Whether a set's images get the same logits, by the lowest and highest (..., class): (...,).

    Of fewer than two images nothing can be told; logits that are not finite are another matter.

    >>> answers_alike([[0.5, -1.0], [0.5, -1.0]], [[0.5, -1.0], [0.5, -0.9]], images=10)
    array([ True, False])
    """
    low, high = np.asarray(lowest, np.float64), np.asarray(highest, np.float64)
    with np.errstate(invalid="ignore"):
        largest = np.maximum(abs(low), abs(high)).max(-1, initial=0.0)
        alike = (high - low <= ROUNDING * largest[..., None]).all(-1)
    return np.asarray(alike & np.isfinite(largest) & (images > 1))


def without_gradient(norm: ArrayLike, right: ArrayLike) -> Flags:
    """Whether all gradients measured since the last evaluation were zero though something was left to learn.

    `norm` is their mean norm, `right` the share of training images that were answered rightly.

    >>> without_gradient([0.0, 0.0, 0.1, float("nan")], [0.5, 1.0, 0.5, 0.5])
    array([ True, False, False, False])
    """
    return np.asarray((np.asarray(norm) == 0) & (np.asarray(right) < 1))


def news(signs: Signs, known: dict[str, Any], place: str) -> Iterator[Notice]:
    """The events of an evaluation: where an episode begins and where it ends, once each; `place` says when that is.

    `known` are the episodes under way, sign -> repeats. It is brought up to date, and belongs into a checkpoint, so
    that a resumed training says nothing twice.
    """
    began = {name: _changes(known, f"alike/{name}", dead) for name, dead in signs.alike.items()}
    for repeat in sorted({repeat for now, _ in began.values() for repeat in now}):
        sets = _listed([name for name, (now, _) in began.items() if repeat in now], len(signs.alike))
        yield Notice(DEAD, f"the network answers every image of {sets} alike at {place}", "warning", repeat)
    for repeat in sorted({repeat for _, over in began.values() for repeat in over}):
        sets = _listed([name for name, (_, over) in began.items() if repeat in over], len(signs.alike))
        yield Notice(ALIVE, f"the network tells images of {sets} apart again at {place}", "info", repeat)
    if signs.no_gradient is not None:
        none = signs.no_gradient
        told_above = np.any([np.zeros_like(none), *signs.alike.values()], axis=0)
        under_way = np.isin(np.arange(len(none)), known.get("gradient", []))
        now, over = _changes(known, "gradient", none & (under_way | ~told_above))
        for repeat in now:
            yield Notice(DEAD, f"every gradient measured up to {place} was zero", "warning", repeat)
        for repeat in over:
            yield Notice(ALIVE, f"gradients measured up to {place} are no longer zero", "info", repeat)


def _changes(known: dict[str, Any], sign: str, dead: Flags) -> tuple[list[int], list[int]]:
    """Repeats whose episode begins, and those whose episode is over."""
    before, now = known.get(sign, []), np.flatnonzero(dead).tolist()
    known[sign] = now
    return [repeat for repeat in now if repeat not in before], [repeat for repeat in before if repeat not in now]


def _listed(names: list[str], of: int) -> str:
    return f"all {of} evaluation sets" if len(names) == of > 1 else ", ".join(names)
