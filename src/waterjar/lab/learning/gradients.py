"""Gradients of a learner's objective: of one repeat by plain autograd, or of several at once by `torch.func`.

Both give the same numbers to float tolerance. Which is quicker hangs on the network: matrices of several repeats go
through one batched product, but convolutions of several repeats become grouped ones, which are slow on CPUs.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from waterjar.errors import WaterjarError
from waterjar.lab.learning.chain import Chain, is_chain
from waterjar.lab.learning.objectives import Objective, Outcome
from waterjar.lab.learning.segments import Lesson, Part, judge
from waterjar.lab.learning.weights import Weights
from waterjar.lab.networks import Network, Readout, normalises_by_batch

Precision = Literal["float32", "bfloat16"]
"""In what a network computes while training."""


class Pass(NamedTuple):
    """What a batch of every repeat told. Its gradients stand in `Gradients.values`."""

    logits: Tensor
    """(repeat, batch, class), before the update."""
    reward: Tensor | None
    """(repeat, batch); None if the learner's answers are the greedy ones."""
    state: dict[str, Tensor]
    """(repeat,) each: the learner's, after the batch."""
    activity: dict[str, Tensor]
    """Layer -> (repeat, unit): mean |activation| over the batch, pixels of maps among it; of the layers asked for."""


class Gradients:
    """Computes them for the repeats of some weights.

    A plain chain of layers is written out (see `chain`); of other networks one repeat goes through autograd, several
    through `torch.func`. `space` (repeat, param) is where gradients are written: nobody keeps them from batch to batch,
    so that those who learn in turns share it, and it stays in the cache.

    precision: what the network computes in while training; weights, gradients and logits are float32 in both.
    apart: segments go through the network one after the other. With batch norm they would share their statistics.
    """

    def __init__(
        self,
        network: Network,
        weights: Weights,
        objective: Objective,
        layers: Sequence[str],
        space: Tensor,
        *,
        precision: Precision = "float32",
        apart: bool = False,
    ) -> None:
        self.values = space
        """(repeat, param): those of the last batch."""
        self._views = weights.views_of(space)
        self._weights = weights
        self._objective = objective
        self._layers = tuple(layers)
        self._reader = _Reader(copy.deepcopy(network), self._layers)
        self.network = self._reader.network
        self._parameters = [parameter for _, parameter in self.network.named_parameters()]
        self._alone = len(weights.values) == 1
        self._precision = precision
        self._apart = apart
        if self._alone:
            self.network.to(space.device)  # its buffers
            self.of_repeat(0)
        elif precision != "float32" or apart or normalises_by_batch(network):
            raise WaterjarError(
                f"{len(weights.values)} repeats are trained at once: expected a network without batch norm, in float32 "
                "(the engine loop trains one at a time)"
            )
        written_out = precision == "float32" and not apart and is_chain(network, len(weights.values))
        self._chain = Chain(network, weights.views, self._views) if written_out else None

    @property
    def can_descend(self) -> bool:
        """Whether `compute` can descend by itself."""
        return self._chain is not None

    def of_repeat(self, repeat: int) -> Network:
        """The network with the weights of a repeat: it shares their memory, and is the same object for all repeats."""
        for name, parameter in self.network.named_parameters():
            parameter.data = self._weights.views[name][repeat]
        return self.network

    def compute(
        self, given: Lesson, uniform: Tensor, state: Mapping[str, Tensor], rates: tuple[float, float] | None = None
    ) -> Pass:
        """A lesson of every repeat, uniform numbers (repeat, sample), the objective's state (repeat,) each.

        With rates of features and readout, and if it can, the weights descend, θ -= rate g; `values` is not written.
        """
        told = functools.partial(judge, self._objective, parts=given.parts)
        if self._chain is not None:
            logits, stages = self._chain.forward(_joined(given.inputs), self._layers)
            activity = {name: _mean_magnitude(maps, 2) for name, maps in stages.items()}
            outcome = told(logits, given.targets, uniform=uniform, state=state)
            self._chain.backward(outcome.by_logits, rates)
        elif self._alone:
            parts, activity = self._forward(given.inputs)
            logits = torch.cat([part.detach() for part in parts])[None] if len(parts) > 1 else parts[0].detach()[None]
            outcome = told(logits, given.targets, uniform=uniform, state=state)
            by = torch.split(outcome.by_logits[0], [len(part) for part in parts])
            found = torch.autograd.grad(parts, self._parameters, by, allow_unused=True)
            if any(one is None for one in found):
                idle = [n for (n, _), g in zip(self.network.named_parameters(), found, strict=True) if g is None]
                raise WaterjarError(f"the logits do not hang on {', '.join(idle)}: expected parameters that can learn")
            torch._foreach_copy_([view[0] for view in self._views.values()], list(found))
        else:
            together: Callable[..., Any] = vmap(functools.partial(self._pulled_back, parts=given.parts))
            with sdpa_kernel(SDPBackend.MATH):  # of attention's kernels the one that can be stacked
                stacked, logits, said, activity = together(
                    self._weights.views, _joined(given.inputs), given.targets, uniform, dict(state)
                )
            outcome = Outcome(*said)
            torch._foreach_copy_(list(self._views.values()), [stacked[name] for name in self._views])
        return Pass(logits, outcome.reward, outcome.state, activity)

    def _forward(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Logits (sample, class) of one repeat's segments, together in one tensor or apart; activities of the first."""
        if not self.network.training:  # an evaluation came in between
            self.network.train()
        segments = inputs if self._apart else [_joined(inputs)]
        found: list[Tensor] = []
        active: dict[str, Tensor] = {}
        for segment in segments:
            images = segment[0]
            if self.network.channels_last:  # once here; torch would do it in the forward and in the backward pass
                images = images.contiguous(memory_format=torch.channels_last)
            with self._autocast():
                logits, activity = self._reader(images)
            found.append(logits if self._precision == "float32" else logits.float())
            active = active or {name: value[None] for name, value in activity.items()}
        return found, active

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.values.device.type, torch.bfloat16)

    def _pulled_back(
        self,
        parameters: dict[str, Tensor],
        images: Tensor,
        targets: tuple[Tensor, ...],
        uniform: Tensor,
        state: dict[str, Tensor],
        *,
        parts: tuple[Part, ...],
    ) -> tuple[dict[str, Tensor], Tensor, Any, dict[str, Tensor]]:
        """Gradients of one repeat by name, its logits, what its learner said, and its activity: for `vmap`."""

        def read(weights: dict[str, Tensor]) -> Any:
            named = {f"network.{name}": value for name, value in weights.items()}
            return functional_call(self._reader, named, (images,))

        logits, pull, activity = vjp(read, parameters, has_aux=True)  # type: ignore[misc]  # its stub forgets the third
        one = {name: value[None] for name, value in state.items()}
        wanted = [target[None] for target in targets]
        said = judge(self._objective, logits.detach()[None], wanted, parts, uniform[None], one)
        after = {name: value[0] for name, value in said.state.items()}
        told = (said.by_logits[0], after, *([] if said.reward is None else [said.reward[0]]))
        return pull(said.by_logits[0])[0], logits.detach(), told, activity

    @torch.no_grad()
    def read(
        self, inputs: Tensor, layers: Sequence[str] = (), readout: Readout = "pooled"
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits (repeat, sample, class), and layers (repeat, sample, unit), of inputs (repeat, sample, ...)."""
        if self._alone:
            if self.network.training:
                self.network.eval()
            logits, found = self.network.forward_features(inputs[0], layers, readout)
            return logits[None], {name: value[None] for name, value in found.items()}
        look = _Look(self.network, tuple(layers), readout)

        def one(parameters: dict[str, Tensor], images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            named = {f"network.{name}": value for name, value in parameters.items()}
            seen: tuple[Tensor, dict[str, Tensor]] = functional_call(look, named, (images,))
            return seen

        with sdpa_kernel(SDPBackend.MATH):
            both: tuple[Tensor, dict[str, Tensor]] = vmap(one)(self._weights.views, inputs)
        return both


class _Reader(nn.Module):
    """Logits and how active the units of some layers are: a module, because `functional_call` takes one."""

    def __init__(self, network: Network, layers: tuple[str, ...]) -> None:
        super().__init__()
        self.network = network
        self._layers = layers

    def forward(self, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        if not self._layers:
            return self.network(images), {}
        logits, found = self.network.forward_features(images, self._layers, "raw")
        return logits, {name: _mean_magnitude(maps.detach()) for name, maps in found.items()}


class _Look(nn.Module):
    """Logits and layers, for `functional_call`."""

    def __init__(self, network: Network, layers: tuple[str, ...], readout: Readout) -> None:
        super().__init__()
        self.network = network
        self._layers = layers
        self._readout: Readout = readout

    def forward(self, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return self.network.forward_features(images, self._layers, self._readout)


def _joined(inputs: Sequence[Tensor]) -> Tensor:
    """Segments (repeat, sample, ...) behind each other."""
    return inputs[0] if len(inputs) == 1 else torch.cat(list(inputs), 1)


def _mean_magnitude(maps: Tensor, unit: int = 1) -> Tensor:
    """Mean |h| over batch and pixels: (batch, unit, ...) -> (unit,); with `repeat` in front and unit=2, that stays."""
    over = tuple(dim for dim in range(unit - 1, maps.ndim) if dim != unit)
    return maps.abs().mean(over)
