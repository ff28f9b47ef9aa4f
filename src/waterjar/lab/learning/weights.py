"""The parameters of several repeats in one tensor, so that a rule is written once, for one repeat or for many."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from waterjar.lab.networks import Network

_LINE = 16  # float32 numbers in a cache line


def aligned_rows(repeats: int, size: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Zeros (repeat, size) of which every row begins at a cache line: products into rows that do not take half as long
    again.

    >>> rows = aligned_rows(3, 5, torch.device("cpu"))
    >>> rows.shape, {row.data_ptr() % 64 for row in rows}
    (torch.Size([3, 5]), {0})
    """
    return torch.zeros(repeats, -(-size // _LINE) * _LINE, device=device, dtype=dtype)[:, :size]


class Weights:
    """Parameters (repeat, param), features first, readout last; and views of them by name.

    Weights of convolutions lie as (repeat, output, height, width, input) where the network is channels-last.

    Rules that treat every parameter alike work on `values`; rules that know layers work on `views`. Both share memory.
    """

    def __init__(self, network: Network, repeats: int, device: torch.device) -> None:
        shapes = {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
        sizes = [math.prod(shape) for shape in shapes.values()]
        self.values = aligned_rows(repeats, sum(sizes), device, network.head.weight.dtype)
        self._shapes = shapes
        self._pixel_by_pixel = network.channels_last
        self.views = self.views_of(self.values)
        self.features = sum(size for name, size in zip(shapes, sizes, strict=True) if not name.startswith("head."))
        """Columns before this one belong to the features, the others to the readout."""

    def rows(self) -> Tensor:
        """Zeros (repeat, param), such as gradients are written into."""
        repeats, size = self.values.shape
        return aligned_rows(repeats, size, self.values.device, self.values.dtype)

    def views_of(self, values: Tensor) -> dict[str, Tensor]:
        """Name -> a view (repeat, *shape) of a tensor (repeat, param) in the form of these parameters."""
        views: dict[str, Tensor] = {}
        start = 0
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            part = values[:, start : start + size]
            if len(shape) == 4 and self._pixel_by_pixel:  # channels last, as convolutions read them
                outputs, inputs, height, width = shape
                views[name] = part.view(len(values), outputs, height, width, inputs).permute(0, 1, 4, 2, 3)
            else:
                views[name] = part.view(len(values), *shape)
            start += size
        return views

    @torch.no_grad()
    def fill(self, networks: Sequence[Network]) -> None:
        """Take over the parameters of one network per repeat."""
        for repeat, network in enumerate(networks):
            for name, parameter in network.named_parameters():
                self.views[name][repeat].copy_(parameter)
