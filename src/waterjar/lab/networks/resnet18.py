"""ResNet-18 for small images: He et al., "Deep residual learning for image recognition" (CVPR 2016).

The stem is that of the continual-learning literature on CIFAR (Rebuffi et al., iCaRL, CVPR 2017; Buzzega et
al., 2020): one 3x3 convolution of stride 1 in place of the 7x7 of stride 2 with max-pooling, which would
leave 1x1 maps. At width 64 and 100 classes it has 11,220,132 parameters, the published count.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from waterjar.lab.networks._initialisation import he_normal
from waterjar.lab.networks._network import ImageShape, Network


class Settings(BaseModel):
    """The width."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: Annotated[int, Field(ge=1)] = 64
    """Channels after the stem: 64 is the full network, 20 the reduced one of GEM (Lopez-Paz & Ranzato, 2017)."""


class Subsample(nn.Module):
    """Every `stride`-th row and column: what a 1x1 convolution of that stride looks at.

    Such a convolution itself must not be used: with fewer than 8 (or 16) channels, laid out channels last, oneDNN
    writes past its workspace in the backward pass, which ends in wrong gradients or a crash (oneDNN issue 6035).
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channel, height / stride, width / stride)."""
        return x[:, :, :: self.stride, :: self.stride]


class Residual(nn.Module):
    """relu(f(x) + shortcut(x)), f = conv3x3, batch norm, relu, conv3x3, batch norm ("basic block", fig. 5 left).

    Where the shape changes, the shortcut is a 1x1 convolution and batch norm (option B, sec. 3.3).
    """

    def __init__(self, channels: int, wide: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wide, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(wide)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != wide:
            self.shortcut = nn.Sequential(
                Subsample(stride), nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channel, height, width), halved in height and width where stride is 2."""
        inner = torch.relu_(self.norm1(self.conv1(x)))
        return torch.relu_(self.norm2(self.conv2(inner)) + self.shortcut(x))


def assemble(settings: Settings, n_classes: int, image_shape: ImageShape) -> Network:
    """Layers `stem`, `layer1` to `layer4` (two blocks each) and `penultimate`, the mean over the last maps."""
    wide = settings.width
    stages: dict[str, nn.Module] = {
        "stem": nn.Sequential(
            nn.Conv2d(image_shape[0], wide, 3, padding=1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True),
        )
    }
    channels = wide
    for number, stride in enumerate((1, 2, 2, 2)):
        out = wide * 2**number
        stages[f"layer{number + 1}"] = nn.Sequential(Residual(channels, out, stride), Residual(out, out, 1))
        channels = out
    stages["penultimate"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(stages, nn.Linear(channels, n_classes), image_shape=image_shape, rule=he_normal, channels_last=True)
