"""What goes through a network in one update: the batch, and whatever options would have learned beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from waterjar.lab.learning.objectives import Objective, Outcome

Distance = Literal["mean", "sum"]
"""How squares of differences are put together over classes; over samples it is their mean."""


class Segment(NamedTuple):
    """Samples that are learned beside those of the batch, for every repeat."""

    inputs: Tensor
    """(repeat, sample, channel, height, width)"""
    targets: Tensor
    """(repeat, sample): labels; or (repeat, sample, class): the logits that shall be given."""
    weight: float | None = None
    """Of the mean over the segment; None adds its samples to the batch, where every sample weighs the same."""
    distance: Distance | None = None
    """Descend the squared distance to logits; None descends the learner's objective."""


class Part(NamedTuple):
    """How many samples a segment has, and what is made of them."""

    samples: int
    weight: float
    distance: Distance | None


class Lesson(NamedTuple):
    """All segments of an update; those that are added to the batch, and the batch, are the first of them."""

    inputs: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]
    parts: tuple[Part, ...]

    @property
    def samples(self) -> int:
        """Of one repeat."""
        return sum(part.samples for part in self.parts)


def lesson(inputs: Tensor, labels: Tensor, segments: Sequence[Segment]) -> Lesson:
    """A batch and the segments beside it."""
    added = [one for one in segments if one.weight is None]
    if added:
        inputs = torch.cat([inputs, *(one.inputs for one in added)], 1)
        labels = torch.cat([labels, *(one.targets for one in added)], 1)
    beside = [one for one in segments if one.weight is not None]
    return Lesson(
        (inputs, *(one.inputs for one in beside)),
        (labels, *(one.targets for one in beside)),
        (
            Part(labels.shape[1], 1.0, None),
            *(Part(one.targets.shape[1], one.weight or 0.0, one.distance) for one in beside),
        ),
    )


def judge(
    objective: Objective,
    logits: Tensor,
    targets: Sequence[Tensor],
    parts: Sequence[Part],
    uniform: Tensor,
    state: Mapping[str, Tensor],
) -> Outcome:
    """Logits (repeat, sample, class) of all segments behind each other -> what is descended, by them.

    State and rewards are those of the first segment. It is a pure function of tensors, as objectives are.
    """
    first, found, start = None, [], 0
    for part, target in zip(parts, targets, strict=True):
        stop = start + part.samples
        own, drawn = logits[:, start:stop], uniform[:, start:stop]
        if part.distance is not None:
            over = part.samples * (own.shape[2] if part.distance == "mean" else 1)
            found.append((own - target.to(own.dtype)) * (2.0 * part.weight / over))
        else:
            outcome = objective.judge(own, target, drawn, state)
            if first is None:
                first = outcome
            found.append(outcome.by_logits if part.weight == 1.0 else outcome.by_logits * part.weight)
        start = stop
    assert first is not None  # the batch
    return first if len(found) == 1 else first._replace(by_logits=torch.cat(found, 1))
