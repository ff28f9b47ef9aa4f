"""Which weights lead to a hidden unit, and which lead away from it: for rules that renew single units."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.lab.networks._blocks import FlattenPixels
from waterjar.lab.networks._network import Network

_WITHOUT_WEIGHTS = (nn.ReLU, nn.MaxPool2d, nn.Flatten, FlattenPixels)


@dataclass(frozen=True)
class UnitLayer:
    """The units of one hidden layer: neurons, or channels of maps."""

    stage: str
    """The layer of the network whose output they are."""
    incoming: str
    """Name of the weight tensor (unit, ...) that leads to them."""
    bias: str | None
    norms: tuple[str, ...]
    """Names of scale and shift of their normalisation, (unit,) each."""
    outgoing: str
    """Name of the weight tensor (output, ...) that leads away from them."""
    units: int
    positions: int
    """How many inputs of the next layer each unit has: pixels, where maps are flattened; else 1."""

    def fan_out(self, outgoing: Tensor) -> Tensor:
        """A view (repeat, output, position, unit, pixel of the kernel) of outgoing weights (repeat, output, ...)."""
        repeats, outputs = outgoing.shape[:2]
        return outgoing.view(repeats, outputs, self.positions, self.units, -1)


def unit_layers(network: Network, needed_by: str) -> list[UnitLayer]:
    """The hidden layers of a plain chain of layers; anything else is an error, because a unit's weights are not known.

    >>> from waterjar.lab.networks import build
    >>> [(layer.stage, layer.units, layer.positions) for layer in unit_layers(
    ...     build("cnn", n_classes=2, image_shape=(1, 56, 56), seed=0), "redo")]
    [('conv1', 16, 1), ('conv2', 32, 1), ('conv3', 64, 4), ('dense1', 64, 1), ('penultimate', 64, 1)]
    """
    found: list[tuple[str, str, nn.Conv2d | nn.Linear, tuple[str, ...]]] = []
    for stage in network.layer_names:
        own: list[tuple[str, nn.Conv2d | nn.Linear]] = []
        norms: list[str] = []
        for name, module in getattr(network, stage).named_modules(prefix=stage):
            if isinstance(module, nn.Conv2d | nn.Linear):
                own.append((name, module))
            elif isinstance(module, nn.LayerNorm | nn.GroupNorm):
                norms += [f"{name}.{key}" for key, _ in module.named_parameters()]
            elif not isinstance(module, (nn.Sequential, *_WITHOUT_WEIGHTS)):
                raise _not_a_chain(needed_by, f"its {name} ({type(module).__name__}) is none")
        if len(own) > 1:
            raise _not_a_chain(needed_by, f"layer '{stage}' has {len(own)} layers inside")
        found += [(stage, name, module, tuple(norms)) for name, module in own]
    after = [(name, module) for _, name, module, _ in found[1:]] + [("head", network.head)]
    layers: list[UnitLayer] = []
    for (stage, name, module, norms_of), (next_name, next_module) in zip(found, after, strict=True):
        units = module.weight.shape[0]
        positions, rest = divmod(next_module.weight.shape[1], units)
        if rest or (positions > 1 and not _flattens_pixels(network)):
            raise _not_a_chain(needed_by, f"{next_name} does not follow on {name}")
        bias = None if module.bias is None else f"{name}.bias"
        layers.append(UnitLayer(stage, f"{name}.weight", bias, norms_of, f"{next_name}.weight", units, positions))
    return layers


def _flattens_pixels(network: Network) -> bool:
    """Whether flattened maps are pixel after pixel, so that a unit's inputs are `units` apart."""
    return any(isinstance(module, FlattenPixels) for module in network.modules())


def _not_a_chain(needed_by: str, why: str) -> WaterjarError:
    return WaterjarError(
        f"option '{needed_by}' renews single units, and needs a network that is a plain chain of layers, such as mlp, "
        f"cnn or small_cnn: {why}"
    )
