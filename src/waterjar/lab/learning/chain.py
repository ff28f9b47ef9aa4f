"""Forward and backward pass of a plain chain of layers, written out: what autograd does, without its bookkeeping.

The same kernels in the same order as autograd's, but gradients of matrices are written where they are wanted instead of
being made and copied, and matrices of several repeats go through one batched product. On one core that is a fifth of
the time of a small perceptron's step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from waterjar.lab.networks import Network
from waterjar.lab.networks._blocks import FlattenPixels

_aten = torch.ops.aten


class _Layer(Protocol):
    def forward(self, x: Tensor) -> Tensor: ...

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        """The gradient by the output of the last `forward` becomes that by its input, if that is needed.

        Gradients by the weights are written to their places; with a rate the weights descend them instead.
        """
        ...


class _Linear:
    """Of all repeats at once: x (repeat, batch, input), weights (repeat, output, input)."""

    def __init__(
        self, weight: Tensor, bias: Tensor, weight_gradient: Tensor, bias_gradient: Tensor, *, reuse: bool
    ) -> None:
        self._weight, self._by_rows, self._bias = weight, weight.transpose(1, 2), bias[:, None]
        # One by one: a batched product into weights that do not lie next to each other is written elsewhere and copied.
        self._weights, self._gradients = list(weight), list(weight_gradient)
        self._bias_gradient = bias_gradient
        self._reuse = reuse
        self._room: dict[str, Tensor] = {}
        self._x = weight

    def forward(self, x: Tensor) -> Tensor:
        self._x = x
        return torch.baddbmm(self._bias, x, self._by_rows, out=self._space("out", x, self._weight.shape[1]))

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        found = None
        if needed:  # before the weights move
            found = torch.bmm(d, self._weight, out=self._space("by input", d, self._weight.shape[2]))
        if rate is None:
            for place, own, x in zip(self._gradients, d, self._x, strict=True):
                torch.mm(own.t(), x, out=place)
            torch.sum(d, 1, out=self._bias_gradient)
        else:
            for weight, own, x in zip(self._weights, d, self._x, strict=True):
                weight.addmm_(own.t(), x, alpha=-rate)
            self._bias.sub_(d.sum(1, keepdim=True), alpha=rate)
        return found

    def _space(self, what: str, like: Tensor, units: int) -> Tensor | None:
        """A place for (repeat, batch, unit), the same every time: memory given back is slow to get anew."""
        shape = (*like.shape[:2], units)
        if self._reuse and (what not in self._room or self._room[what].shape != shape):
            self._room[what] = like.new_empty(shape)
        return self._room.get(what)


class _Convolution:
    """Of one repeat: (1, batch, channel, height, width). Those of several would be grouped, which is slow on CPUs."""

    def __init__(self, module: nn.Conv2d, weight: Tensor, bias: Tensor, gradients: tuple[Tensor, Tensor]) -> None:
        self._weight, self._bias, self._gradients = weight[0], bias[0], (gradients[0][0], gradients[1][0])
        # stride, padding, dilation, transposed, output padding, groups: as torch's convolution takes them
        self._how = (list(module.stride), list(module.padding), list(module.dilation), False, [0, 0], module.groups)
        self._x = weight

    def forward(self, x: Tensor) -> Tensor:
        self._x = x[0]
        out: Tensor = _aten.convolution(self._x, self._weight, self._bias, *self._how)
        return out[None]

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        by_input, by_weight, by_bias = _aten.convolution_backward(
            d[0], self._x, self._weight, [len(self._bias)], *self._how, [needed, True, True]
        )
        for parameter, place, found in zip(
            (self._weight, self._bias), self._gradients, (by_weight, by_bias), strict=True
        ):
            if rate is None:
                place.copy_(found)
            else:
                parameter.sub_(found, alpha=rate)
        return by_input[None] if needed else None


class _Relu:
    def __init__(self) -> None:
        self._out = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        self._out = x.relu_()  # the layer before keeps its input, not its output
        return self._out

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        found: Tensor = _aten.threshold_backward.grad_input(d, self._out, 0, grad_input=d)  # made for us: in place
        return found


class _MaxPool:
    def __init__(self, module: nn.MaxPool2d) -> None:
        size, stride = module.kernel_size, module.stride
        self._how: tuple[Any, ...] = ([size, size], [stride, stride], [0, 0], [1, 1], False)
        self._x = self._indices = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        self._x = x[0]
        out: Tensor
        out, self._indices = _aten.max_pool2d_with_indices(self._x, *self._how)
        return out[None]

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        found: Tensor = _aten.max_pool2d_with_indices_backward(d[0], self._x, *self._how, self._indices)
        return found[None]


class _Flatten:
    """Maps to units, pixel after pixel; units stay."""

    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        pixels = x.movedim(2, 4)
        self._shape = tuple(pixels.shape)
        return pixels.flatten(2)

    def backward(self, d: Tensor, needed: bool, rate: float | None) -> Tensor | None:
        return d.view(self._shape).movedim(4, 2)


class Chain:
    """The layers of a network, on weights and gradients (repeat, ...), by name."""

    def __init__(self, network: Network, weights: Mapping[str, Tensor], gradients: Mapping[str, Tensor]) -> None:
        self._stages: list[tuple[str, list[_Layer]]] = []
        for stage in (*network.layer_names, "head"):
            layers: list[_Layer] = []
            for name, module in getattr(network, stage).named_modules(prefix=stage):
                keys = f"{name}.weight", f"{name}.bias"
                if isinstance(module, nn.Linear):
                    parts = *(weights[key] for key in keys), *(gradients[key] for key in keys)
                    layers.append(_Linear(*parts, reuse=stage != "head"))  # logits are kept by who is told them
                elif isinstance(module, nn.Conv2d):
                    both = gradients[keys[0]], gradients[keys[1]]
                    layers.append(_Convolution(module, weights[keys[0]], weights[keys[1]], both))
                elif isinstance(module, nn.ReLU):
                    layers.append(_Relu())
                elif isinstance(module, nn.MaxPool2d):
                    layers.append(_MaxPool(module))
                elif isinstance(module, FlattenPixels):
                    layers.append(_Flatten())
            self._stages.append((stage, layers))

    @torch.no_grad()
    def forward(self, images: Tensor, wanted: tuple[str, ...]) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits (repeat, batch, class) and outputs of some stages; what `backward` needs is kept."""
        x, found = images, {}
        for stage, layers in self._stages:
            for layer in layers:
                x = layer.forward(x)
            if stage in wanted:
                found[stage] = x
        return x, found

    @torch.no_grad()
    def backward(self, by_logits: Tensor, rates: tuple[float, float] | None = None) -> None:
        """From the gradient by the logits to those by the weights, which are written into their places.

        With rates (of features and readout) the weights descend them at once, and no gradient is written: a product
        that is added to weights is one pass over memory, a product, and weights minus rate times it, are four.
        """
        layers = [(layer, stage == "head") for stage, layers in self._stages for layer in layers]
        first = next(k for k, (layer, _) in enumerate(layers) if isinstance(layer, _Linear | _Convolution))
        d: Tensor | None = by_logits
        for k in range(len(layers) - 1, first - 1, -1):
            layer, is_head = layers[k]
            if d is not None:
                d = layer.backward(d, k > first, None if rates is None else rates[is_head])


def is_chain(network: Network, repeats: int) -> bool:
    """Whether the pass can be written out: layers in a row, of the kinds above, with biases; maps of one repeat alone.

    >>> from waterjar.lab.networks import build
    >>> usual = {"n_classes": 2, "image_shape": (1, 4, 4), "seed": 0}
    >>> plain, normalised = (build("mlp", **usual, layer_norm=on) for on in (False, True))
    >>> is_chain(plain, 3), is_chain(normalised, 3)
    (True, False)
    """
    modules = [module for stage in network.layer_names for module in getattr(network, stage).modules()]
    return all(_fits(module, repeats) for module in (*modules, network.head))


def _fits(module: nn.Module, repeats: int) -> bool:
    if isinstance(module, nn.Conv2d | nn.MaxPool2d) and repeats > 1:
        return False
    if isinstance(module, nn.Conv2d):
        return module.bias is not None and module.padding_mode == "zeros" and not isinstance(module.padding, str)
    if isinstance(module, nn.MaxPool2d):
        plain = isinstance(module.kernel_size, int) and isinstance(module.stride, int)
        return plain and module.padding == 0 and module.dilation == 1 and not module.ceil_mode
    if isinstance(module, nn.Linear):
        return module.bias is not None
    return isinstance(module, nn.Sequential | nn.ReLU | FlattenPixels)
