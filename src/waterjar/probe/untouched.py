"""A copy of a network to work on, and a room in which no random number of the outside is drawn."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterable, Iterator

import numpy as np
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
    """Inside, torch, Python and numpy draw from `seed` (dropout does, a forward may); outside, nothing has moved.

    Gradients are on inside, also within `torch.no_grad()` or `torch.inference_mode()`.
    """
    if seed < 0:
        raise WaterjarError(f"seed={seed}: expected a whole number from 0 on")
    devices = [] if device.type == "cpu" else [device]
    kind = "cuda" if device.type == "cpu" else device.type
    with torch.random.fork_rng(devices, device_type=kind), _own_python(seed), _own_numpy(seed), _gradients():
        torch.default_generator.manual_seed(seed)
        for other in devices:
            torch.get_device_module(other).manual_seed(seed)
        yield


@contextlib.contextmanager
def left_as_it_was(network: nn.Module, generators: Iterable[torch.Generator] = ()) -> Iterator[None]:
    """Inside, the network is in eval mode; outside, its modes, buffers and all random generators are what they were.

    `generators` are those beside the global ones that something in there may draw from, such as a DataLoader's own.
    Weights and gradients are not protected: nothing in there is to touch them.
    """
    modes = [(module, module.training) for module in network.modules()]
    buffers = [(module, dict(module._buffers), _copies(module)) for module in network.modules()]
    states = [(one, one.get_state()) for one in dict.fromkeys(generators)]
    try:
        with own_randomness(0, device_of(network)):
            network.eval()
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        for module, own, copies in buffers:
            _put_back(module, own, copies)
        for one, state in states:
            one.set_state(state)


def _copies(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: one.detach().clone() for name, one in module._buffers.items() if one is not None}


def _put_back(module: nn.Module, own: dict[str, torch.Tensor | None], copies: dict[str, torch.Tensor]) -> None:
    """The very same buffers, with what was in them."""
    module._buffers.clear()
    module._buffers.update(own)
    with torch.no_grad():
        for name, before in copies.items():
            one = own[name]
            if one is not None and (one.shape != before.shape or not torch.equal(one, before)):
                one.copy_(before)


@contextlib.contextmanager
def _gradients() -> Iterator[None]:
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextlib.contextmanager
def _own_python(seed: int) -> Iterator[None]:
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@contextlib.contextmanager
def _own_numpy(seed: int) -> Iterator[None]:
    """Another generator behind the functions of np.random: that of the outside may be of any kind."""
    outside = np.random.get_bit_generator()  # type: ignore[attr-defined] # missing in numpy's stubs
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - to put it back
    np.random.set_bit_generator(np.random.MT19937(seed))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        np.random.set_bit_generator(outside)  # type: ignore[attr-defined]
        np.random.set_state(state)  # noqa: NPY002 - a number drawn in advance is part of it
