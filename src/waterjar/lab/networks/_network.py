"""The one shape that all networks here have: named stages in a row, then a linear head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError, unknown_name

ImageShape = tuple[int, int, int]
"""Channels, height, width."""

Readout = Literal["pooled", "flat", "raw"]
"""How `Network.forward_features` hands a layer over; see there."""

WeightRule = Callable[[Tensor, torch.Generator], object]
"""Fills the weight of a hidden layer, in place."""


class Network(nn.Module):
    """Images (batch, channels, height, width) to logits (batch, class).

    stages: the layers in order, by name; the last is called `penultimate` and gives (batch, unit).
    channels_last: weights are laid out so, which is what convolutions like on a CPU; images best are, too.
    rule: how the weights of hidden layers begin; the head has its own (see `_initialisation`).
    """

    def __init__(
        self,
        stages: Mapping[str, nn.Module],
        head: nn.Linear,
        *,
        image_shape: ImageShape,
        rule: WeightRule,
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        self.layer_names = tuple(stages)
        if not stages or self.layer_names[-1] != "penultimate":
            raise WaterjarError(f"the last stage must be called 'penultimate'; these are {self.layer_names}")
        for name, stage in stages.items():
            self.add_module(name, stage)
        self.head = head
        self.image_shape = image_shape
        self.rule = rule
        self.channels_last = channels_last

    @property
    def n_classes(self) -> int:
        """How many logits there are."""
        return self.head.out_features

    def check_layers(self, names: Sequence[str], what: str) -> None:
        """Refuse a layer that there is not; `what` it was given as."""
        for name in names:
            if name not in self.layer_names:
                raise unknown_name(what, name, self.layer_names)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, class)."""
        x = images
        for name in self.layer_names:
            x = getattr(self, name)(x)
        logits: Tensor = self.head(x)
        return logits

    def forward_features(
        self, images: Tensor, layers: Sequence[str] | None = None, readout: Readout = "pooled"
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits (batch, class), and the output of each named layer (all of them without `layers`).

        Units (batch, unit) stay as they are. Maps (batch, channel, height, width) and tokens (batch, token, unit):

        | readout | maps become | tokens become |
        |---|---|---|
        | pooled | (batch, channel), the mean over height and width | (batch, unit), the class token |
        | flat | (batch, channel * height * width) | (batch, token * unit) |
        | raw | what they are | what they are |

        It runs in the mode that the network is in: call `eval()` first where a measurement is wanted.
        """
        wanted = self.layer_names if layers is None else tuple(layers)
        self.check_layers(wanted, "layer")
        if readout not in get_args(Readout):
            raise unknown_name("readout", readout, get_args(Readout))
        found: dict[str, Tensor] = {}
        x = images
        for name in self.layer_names:
            x = getattr(self, name)(x)
            if name in wanted:
                found[name] = _read_out(x, readout)
        return self.head(x), {name: found[name] for name in wanted}


def normalises_by_batch(network: nn.Module) -> bool:
    """Whether an image's logits hang on its neighbours in the batch, as with batch norm while training."""
    return any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in network.modules())


def check_without_averages(network: nn.Module, name: str) -> None:
    """Refuse a network with buffers where repeats are trained side by side, by weights alone."""
    if any(True for _ in network.buffers()):
        raise WaterjarError(
            f"network '{name}' normalises over the batch and keeps running averages, which would be shared by the "
            "repeats of a run, or lost when it is resumed: expected one without batch norm, such as cnn, mlp, vit, or "
            "small_cnn with norm 'group' or 'none'"
        )


def _read_out(x: Tensor, readout: Readout) -> Tensor:
    if readout == "raw" or x.ndim == 2:
        return x
    if readout == "flat":
        return x.flatten(1)
    return x.mean((2, 3)) if x.ndim == 4 else x[:, 0]
