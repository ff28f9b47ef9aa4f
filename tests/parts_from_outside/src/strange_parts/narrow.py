"""A network: one narrow hidden layer with a tanh."""

from math import prod

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from waterjar.lab.networks import ImageShape, Network


class Settings(BaseModel):
    """How narrow it is."""

    model_config = ConfigDict(extra="forbid")
    units: int = Field(6, ge=1)


def assemble(settings: Settings, n_classes: int, image_shape: ImageShape) -> Network:
    """One stage, and the head."""
    stage = nn.Sequential(nn.Flatten(), nn.Linear(prod(image_shape), settings.units), nn.Tanh())
    return Network({"penultimate": stage}, nn.Linear(settings.units, n_classes), image_shape=image_shape, rule=_first)


def _first(weights: torch.Tensor, generator: torch.Generator) -> object:
    return nn.init.xavier_uniform_(weights, generator=generator)
