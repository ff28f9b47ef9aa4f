"""The seed authors' CNN: convolutions of 16, 32 and 64 channels, each with ReLU and a max pool of 3, then two dense
layers of 64 and the readout.

The pool comes BEFORE the ReLU here. Both are monotone, so the order changes no number: max(relu(x)) = relu(max(x)),
and no gradient either, because where the largest of a window is above 0 it is the same pixel, and elsewhere the
gradient is 0 both ways. But the ReLU and its backward pass then see a ninth of the pixels.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from waterjar.errors import WaterjarError
from waterjar.lab.networks._blocks import FlattenPixels, dense
from waterjar.lab.networks._initialisation import he_normal
from waterjar.lab.networks._network import ImageShape, Network

Width = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """Widths and pools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    channels: Annotated[tuple[Width, ...], Field(min_length=1)] = (16, 32, 64)
    dense: Annotated[tuple[Width, ...], Field(min_length=1)] = (64, 64)
    kernel: Annotated[int, Field(ge=1)] = 3
    """Side of the convolutions; maps keep their size (padding kernel // 2)."""
    pool: Annotated[int, Field(ge=1)] = 3
    """Side of the pooled windows."""
    stride: Annotated[int, Field(ge=1)] | None = None
    """Between pooled windows; None for `pool`, so that they touch and do not overlap."""
    layer_norm: bool = False
    """After every layer, before its ReLU; of maps over channels and pixels. The option `layer_norm` sets it."""


def assemble(settings: Settings, n_classes: int, image_shape: ImageShape) -> Network:
    """Layers `conv1` ... after pool and ReLU, `dense1` ... after their ReLU; the last is called `penultimate`."""
    stages: dict[str, nn.Module] = {}
    channels, *sides = image_shape
    stride = settings.stride or settings.pool
    for number, wide in enumerate(settings.channels, start=1):
        convolution = nn.Conv2d(channels, wide, settings.kernel, padding=settings.kernel // 2)
        norm = [nn.GroupNorm(1, wide)] if settings.layer_norm else []
        stages[f"conv{number}"] = nn.Sequential(
            convolution, *norm, nn.MaxPool2d(settings.pool, stride), nn.ReLU(inplace=True)
        )
        channels = wide
        for k, side in enumerate(sides):
            full = side + 2 * (settings.kernel // 2) - settings.kernel + 1
            sides[k] = (full - settings.pool) // stride + 1
        if min(sides) < 1:
            raise WaterjarError(
                f"network 'cnn': images of {image_shape[1]}x{image_shape[2]} are too small for {number} pools of "
                f"{settings.pool} (stride {stride}): take fewer channels, or a smaller pool or stride"
            )
    units = channels * sides[0] * sides[1]
    for number, wide in enumerate(settings.dense, start=1):
        name = "penultimate" if number == len(settings.dense) else f"dense{number}"
        stages[name] = dense(
            units, wide, layer_norm=settings.layer_norm, first=FlattenPixels() if number == 1 else None
        )
        units = wide
    head = nn.Linear(units, n_classes)
    return Network(stages, head, image_shape=image_shape, rule=he_normal, channels_last=True)
