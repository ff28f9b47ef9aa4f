"""A room in which a collective is measured: evaluation mode, no gradients kept, nothing of the outside moved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from waterjar.probe.collective.live import place_of
from waterjar.probe.untouched import own_randomness


@contextlib.contextmanager
def measured(module: nn.Module, seed: int = 0, *, gradients: bool = False) -> Iterator[torch.device]:
    """Inside, the module is in evaluation mode, and random numbers come from `seed`; gives the place it lives at.

    Afterwards, also after an exception, every submodule has its mode, every buffer its numbers (and no buffer is there
    that was not before), and no global generator has moved. Parameters are not touched by a forward; their gradients
    are not either. What a model keeps in plain attributes, such as a mailbox that it clears, is its own affair.
    """
    device = place_of(module)
    modes = [(one, one.training) for one in module.modules()]
    buffers = [(one, {name: _copied(tensor) for name, tensor in one._buffers.items()}) for one in module.modules()]
    try:
        with own_randomness(seed, device), torch.set_grad_enabled(gradients):
            module.eval()
            yield device
    finally:
        for one, mode in modes:
            one.training = mode
        for one, before in buffers:
            one._buffers.clear()
            for name, (tensor, numbers) in before.items():
                one._buffers[name] = tensor
                _put_back(tensor, numbers)


def _copied(tensor: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    return tensor, None if tensor is None else tensor.detach().clone()


def _put_back(tensor: Tensor | None, numbers: Tensor | None) -> None:
    if tensor is not None and numbers is not None:
        with torch.no_grad():
            tensor.copy_(numbers)
