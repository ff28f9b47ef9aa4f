"""A classifier as attacks see it: pixels in, logits out, slopes of a loss by the pixels; nothing of it is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.probe.attacks._losses import Loss
from waterjar.probe.pixels import Normalise, normaliser
from waterjar.probe.untouched import private_copy

Model = Callable[..., Any]
"""Images -> logits (sample, class), or a tuple whose first part these are."""


class Victim:
    """A model behind its normalisation.

    A network, or a method of one, is copied and set to evaluation mode; whatever else can be called is called as it is,
    and is in whatever mode its owner left it. Slopes are taken by the images alone: no parameter gets a gradient.
    """

    def __init__(self, model: Model, normalise: Normalise, device: torch.device) -> None:
        self._model, self._normalise, self.device = _untouched(model), normaliser(normalise), device

    def logits(self, images: Tensor) -> Tensor:
        """(sample, class) of pixels."""
        given = self._model(self._normalise(images))
        found = given[0] if isinstance(given, tuple | list) and len(given) else given
        if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != len(images):
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise WaterjarError(f"the model gives {shape} of {len(images)} images: expected logits (sample, class)")
        return found

    def right(self, images: Tensor, labels: Tensor) -> Tensor:
        """(sample,): whether the label has the largest logit; never where a logit is NaN."""
        with torch.no_grad():
            return is_right(self.logits(images), labels)

    def slope(self, images: Tensor, labels: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """Losses (sample,), their derivative by every pixel, and the logits.

        A derivative that is not a number counts as 0: it points nowhere.
        """
        asked = images.detach().requires_grad_()
        logits = self.logits(asked)
        losses = loss(logits, labels)
        if not losses.requires_grad:  # the model has cut its outputs off from its inputs
            return losses, torch.zeros_like(images), logits
        (found,) = torch.autograd.grad(losses.sum(), asked, allow_unused=True)
        slope = torch.zeros_like(images) if found is None else torch.nan_to_num(found, nan=0.0)
        return losses.detach(), slope, logits.detach()


def is_right(logits: Tensor, labels: Tensor) -> Tensor:
    """(sample,): whether the label has the largest logit; never where a logit is NaN."""
    if int(labels.max()) >= logits.shape[1]:
        raise WaterjarError(f"labels go up to {int(labels.max())}, and the model has {logits.shape[1]} classes")
    return (logits.argmax(1) == labels) & ~logits.isnan().any(1)


def _network(model: Model) -> nn.Module | None:
    """The network that a model is, or is a method of."""
    own = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    return own if isinstance(own, nn.Module) else None


def place_of(model: Model) -> torch.device | None:
    """Where a model lives, if that can be told."""
    network = _network(model)
    first = None if network is None else next(network.parameters(), next(network.buffers(), None))
    return None if first is None else first.device


def _untouched(model: Model) -> Model:
    """A model to work on."""
    network = _network(model)
    if network is not None:
        twin: Any = private_copy(network).eval()
        return twin if network is model else getattr(twin, model.__name__)  # type: ignore[no-any-return]
    if not callable(model):
        raise WaterjarError(f"{type(model).__name__} cannot be called: expected a model, images -> logits")
    return model
