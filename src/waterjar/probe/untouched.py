"""A copy of a network to work on, and a room in which no random number of the outside is drawn."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import torch
from torch import nn

from waterjar.errors import WaterjarError


def private_copy(network: nn.Module) -> nn.Module:
    """A copy with nothing in common with the network: parameters, buffers, gradients, mode.

    Hooks are copied as references: one that records what passes through would also see the copy.
    """
    try:
        twin = copy.deepcopy(network)
    except RuntimeError as error:  # torch copies no tensor in the middle of a graph
        raise WaterjarError(
            f"the network cannot be copied ({error}): probe it between training steps, with no graph held"
        ) from error
    for parameter in twin.parameters():
        parameter.grad = None
    return twin


def device_of(network: nn.Module) -> torch.device:
    """Where the network lives; an error if it has no parameters."""
    first = next(network.parameters(), None)
    if first is None:
        raise WaterjarError("the network has no parameters: there is nothing to probe")
    return first.device


@contextlib.contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, torch draws from `seed` (dropout does); outside, its generators are where they were.

    Gradients are on inside, also within `torch.no_grad()` or `torch.inference_mode()`.
    """
    devices = [] if device.type == "cpu" else [device]
    kind = "cuda" if device.type == "cpu" else device.type
    with torch.random.fork_rng(devices, device_type=kind), torch.inference_mode(False), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        for other in devices:
            torch.get_device_module(other).manual_seed(seed)
        yield
