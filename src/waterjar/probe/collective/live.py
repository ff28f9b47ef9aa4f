"""What a live collective is to all that measures it: streams, what they say about a batch, and what without some.

`adapt` makes one of most models. For a model of another kind, one small class is enough: `streams`, `module` and
`outputs`. Whatever else it leaves out is said in one sentence where it is asked for, and costs nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.combining import are_probabilities

ABSENCES = ("removed", "zeroed", "resampled")
"""How a stream can be absent: the collective runs without it, its output is zero, or it is that of another sample."""

Streams = Mapping[str, Tensor]
"""A tensor of each stream, by its name."""
Present = NDArray[np.bool_]
"""(coalition, stream): who is there."""


@dataclass(frozen=True)
class Outputs:
    """What a collective says about a batch. A mapping goes by stream; None is what the model cannot tell."""

    collective: Tensor
    """(sample, class): logits."""
    individual: Streams | None = None
    """(sample, class): logits of each stream among the others."""
    isolated: Streams | None = None
    """(sample, class): logits of each stream with nothing of another one leaking in."""
    pooled: Streams | None = None
    """(sample, unit): what each stream hands to the fusion."""
    route_index: Streams | None = None
    """(sample, slot, route): whole numbers."""
    route_weight: Streams | None = None
    """(sample, slot, route)."""
    affinity: Streams | None = None
    """(sample, anchor), or (anchor) where no input changes it."""


class LiveCollective:
    """The base of all adapters. A subclass sets `streams` and `module`, and has `outputs`; the rest has a default.

    >>> class Pair(LiveCollective):
    ...     def __init__(self, left: nn.Module, right: nn.Module) -> None:
    ...         self.streams, self.module = ("left", "right"), nn.ModuleList([left, right])
    ...
    ...     def outputs(self, x: Any) -> Outputs:
    ...         said = {name: net(x) for name, net in zip(self.streams, self.module, strict=True)}
    ...         return Outputs(said["left"] + said["right"], individual=said)
    >>> pair = Pair(nn.Linear(3, 2), nn.Linear(3, 2))
    >>> pair.outputs(torch.zeros(5, 3)).collective.shape
    torch.Size([5, 2])
    >>> pair.check("zeroed")
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: Pair cannot be run with a stream 'zeroed': it can do none of the three
    """

    streams: tuple[str, ...]
    """Names, in order."""
    module: nn.Module
    """Holds all parameters; is in evaluation mode while it is measured."""
    absences: tuple[str, ...] = ()
    """Those of `ABSENCES` that it can do."""
    hands_over: Literal["pooled", "individual"] = "pooled"
    """What of its outputs a stream gives to the others: gradients are by that."""
    rule: str | None = None
    """How the streams' logits make the collective's where that is all: mean_probability, mean_logit or vote."""
    are_logits: bool = False
    """Whether outputs are logits for sure; else those that look like probabilities are refused."""

    @property
    def independent(self) -> bool | None:
        """Whether no stream changes another one's output; None where that is not known."""
        return None

    def take_logs(self) -> None:
        """Take what the model gives for probabilities, and their logs for logits."""
        raise WaterjarError(f"probabilities=True: the outputs of {type(self).__name__} have to be logits")

    def outputs(self, x: Any) -> Outputs:
        """All that the collective says about a batch; with gradients where they are on."""
        raise NotImplementedError(f"{type(self).__name__} has no outputs(x)")

    def logits(self, x: Any) -> Tensor:
        """(sample, class): what the collective answers, and no more."""
        return self.outputs(x).collective

    def stream_logits(self, x: Any, name: str) -> Tensor:
        """(sample, class): what one stream answers among the others."""
        said = self.outputs(x).individual
        if said is None or name not in said:
            raise WaterjarError(f"the model does not tell the logits of stream '{name}'")
        return said[name]

    def fingerprints(self) -> Tensor | None:
        """(stream, component); None where it has none."""
        return None

    def stream_parameters(self) -> Mapping[str, int] | None:
        """How many parameters each stream has; None where they cannot be told apart."""
        return None

    def cannot(self) -> dict[str, str]:
        """What this model cannot tell -> one sentence; found by looking at it, beside what its outputs lack."""
        return {}

    def absent(self, names: Sequence[str], how: str, donors: Any = None) -> contextlib.AbstractContextManager[None]:
        """Inside, `logits` and `outputs` are those without these streams; afterwards all is as it was, bit for bit.

        `donors` are the inputs whose stream outputs stand in where `how` is resampled: as many as the batch has.
        """
        raise self._unable(how)

    def prepare(self, x: Any) -> Any:
        """What is worth keeping of a batch so that coalitions need not be run from the start: by default, the batch."""
        return x

    def answers(self, kept: Any, present: Present, how: str, donors: Any = None) -> Iterator[Tensor]:
        """(sample, class) for each coalition in turn, of what `prepare` kept of a batch (and of its donors)."""
        self.check(how)
        return self._one_by_one(kept, present, how, donors)

    def _one_by_one(self, kept: Any, present: Present, how: str, donors: Any) -> Iterator[Tensor]:
        for there in present:
            with self.absent([name for name, is_in in zip(self.streams, there, strict=True) if not is_in], how, donors):
                answer = self.logits(kept)
            yield answer  # here, and not inside: the model is as it was whenever somebody else is at work

    def check(self, how: str, names: Sequence[str] = ()) -> None:
        """Refuse what it cannot do: an absence, or streams that it does not have."""
        if how not in ABSENCES:
            raise unknown_name("absence", how, ABSENCES)
        if how not in self.absences:
            raise self._unable(how)
        for name in names:
            if name not in self.streams:
                raise unknown_name("stream", name, self.streams)
        if how == "removed" and len(set(names)) == len(self.streams):
            raise WaterjarError("removed: all streams are to be absent, and nobody is left to answer")

    def _unable(self, how: str) -> WaterjarError:
        able = ", ".join(self.absences) or "none of the three"
        why = self.cannot().get(how, "")
        return WaterjarError(f"{type(self).__name__} cannot be run with a stream '{how}': {why or f'it can do {able}'}")


def absences_of(given: Sequence[str] | str) -> list[str]:
    """Names of absences, each once; one alone may be a text.

    >>> absences_of("removed"), absences_of(["zeroed", "removed", "zeroed"])
    (['removed'], ['zeroed', 'removed'])
    """
    return [given] if isinstance(given, str) else list(dict.fromkeys(given))


def check_names(names: Sequence[str] | None, count: int, default: str) -> tuple[str, ...]:
    """Names of streams: as given, one for each, or counted.

    >>> check_names(None, 2, "net")
    ('net_0', 'net_1')
    """
    if names is None:
        return tuple(f"{default}_{i}" for i in range(count))
    found = tuple(str(name) for name in names)
    if len(found) != count or len(set(found)) != count:
        raise WaterjarError(f"names={list(found)}: expected {count} different ones, one for each stream")
    return found


def refuse_probabilities(name: str, logits: ArrayLike) -> None:
    """Refuse what looks like probabilities: their softmax is another answer, and no number would show it."""
    if are_probabilities(logits):
        raise WaterjarError(
            f"logits of {name}: these look like probabilities (0 or more, and every row sums to 1): "
            "adapt(model, probabilities=True) takes their logs, probabilities=False takes them for logits; or leave "
            "out the softmax at the model's end"
        )


def same_batch(logits: Streams, what: str) -> None:
    """Refuse outputs that are not (sample, class) each, or not of the same samples."""
    shapes = {name: tuple(one.shape) for name, one in logits.items()}
    if any(len(shape) != 2 for shape in shapes.values()) or len({shape[0] for shape in shapes.values()}) > 1:
        raise WaterjarError(f"{what} have the shapes {shapes}: expected (sample, class), the same samples in all")


def size_of(module: nn.Module, trained: bool = False) -> int:
    """How many parameters a module has; with `trained`, how many of them want a gradient."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trained)


def place_of(module: nn.Module) -> torch.device:
    """Where a module lives; the processor if it has neither parameters nor buffers."""
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")
