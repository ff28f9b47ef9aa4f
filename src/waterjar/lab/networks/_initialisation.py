"""First weights, from an explicit generator: every number is written here, none by a layer's constructor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError

if TYPE_CHECKING:
    from waterjar.lab.networks._network import Network


@runtime_checkable
class FillsItself(Protocol):
    """A module with parameters of its own kind, such as a class token."""

    def fill(self, generator: torch.Generator) -> None:
        """Write the first values of the module's own parameters, not of its children's."""
        ...


def he_normal(weight: Tensor, generator: torch.Generator) -> None:
    """N(0, 2 / fan_in), for layers before a ReLU (He et al., ICCV 2015, eq. 10)."""
    fan_in = weight[0].numel()
    weight.normal_(0.0, math.sqrt(2.0 / fan_in), generator=generator)


def xavier_uniform(weight: Tensor, generator: torch.Generator) -> None:
    """U(-a, a), a = sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, AISTATS 2010, eq. 16)."""
    receptive = weight[0, 0].numel()
    bound = math.sqrt(6.0 / ((weight.shape[0] + weight.shape[1]) * receptive))
    weight.uniform_(-bound, bound, generator=generator)


def fan_in_uniform(weight: Tensor, generator: torch.Generator) -> None:
    """U(-a, a), a = 1 / sqrt(fan_in): small first logits, so that training starts from loss ln(n_classes)."""
    bound = 1.0 / math.sqrt(weight[0].numel())
    weight.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def initialise(network: Network, generator: torch.Generator) -> None:
    """Write every parameter and buffer, in the order of the modules; the head comes last.

    Weights of hidden layers follow `network.rule`, the head's `fan_in_uniform`; biases are 0, the scales of
    normalisations 1. A module that nobody knows how to fill is an error, never left as it was.
    """
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.is_floating_point():
            tensor.fill_(math.nan)
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            rule = fan_in_uniform if module is network.head else network.rule
            rule(module.weight, generator)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
            module.reset_parameters()  # constants, no draws
        elif isinstance(module, FillsItself):
            module.fill(generator)
        elif any(True for _ in module.parameters(recurse=False)):
            raise WaterjarError(
                f"no rule for the first weights of '{name}' ({type(module).__name__}): "
                "give it a method `fill(generator)`"
            )
    unfilled = [name for name, tensor in network.state_dict().items() if bool(torch.isnan(tensor).any())]
    if unfilled:
        raise WaterjarError(f"these weights were left without a first value: {', '.join(unfilled)}")
