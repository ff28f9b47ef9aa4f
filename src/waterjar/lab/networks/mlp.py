"""A multilayer perceptron: linear layers and ReLUs on the flattened image, with layer norm where asked."""

from __future__ import annotations

from math import prod
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from waterjar.lab.networks._blocks import FlattenPixels, dense
from waterjar.lab.networks._initialisation import he_normal
from waterjar.lab.networks._network import ImageShape, Network


class Settings(BaseModel):
    """The hidden layers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (256, 256)
    """Units of each hidden layer."""
    layer_norm: bool = False
    """Before each ReLU. The option `layer_norm` sets it."""


def assemble(settings: Settings, n_classes: int, image_shape: ImageShape) -> Network:
    """Layers `hidden1`, `hidden2` ... after their ReLUs; the last of them is called `penultimate`."""
    stages: dict[str, nn.Module] = {}
    units = prod(image_shape)
    for number, wide in enumerate(settings.hidden, start=1):
        name = "penultimate" if number == len(settings.hidden) else f"hidden{number}"
        stages[name] = dense(
            units, wide, layer_norm=settings.layer_norm, first=FlattenPixels() if number == 1 else None
        )
        units = wide
    return Network(stages, nn.Linear(units, n_classes), image_shape=image_shape, rule=he_normal)
