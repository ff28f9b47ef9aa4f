"""Running an attack: images checked, the model copied, batch after batch, and what became of every image."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.errors import WaterjarError, unknown_name
from waterjar.probe.attacks._ball import NAMED, radius
from waterjar.probe.attacks._losses import margin
from waterjar.probe.attacks._victim import Model, Victim, is_right, place_of
from waterjar.probe.draws import Draws
from waterjar.probe.pixels import Normalise, checked_images, checked_index, checked_labels
from waterjar.probe.untouched import own_randomness
from waterjar.run.shelf import Shelf

Bools = NDArray[np.bool_]
Kernel = Callable[..., Tensor]
"""kernel(victim, images, labels, *, eps, draws, **settings) -> images, of one batch where the model lives."""

SHELF = Shelf("", "attack", "waterjar.probe.attacks")
_GIVEN = ("victim", "images", "labels", "eps", "draws")


@dataclass(frozen=True, eq=False)
class Attacked:
    """What an attack made of images, one by one."""

    how: str
    """The name of the attack."""
    eps: str
    """As it was given: `0.03`, `8/255`."""
    clean: Tensor
    """(sample, ...): the images before, in pixels of [0, 1]."""
    images: Tensor
    """(sample, ...): the images after, within eps of them."""
    clean_right: Bools
    """(sample,): whether the model is right of the image before."""
    right: Bools
    """(sample,): whether it is right of the image after."""
    clean_margin: NDArray[np.float64]
    """(sample,): largest other logit less that of the label, of the image before; above 0 it is misclassified."""
    margin: NDArray[np.float64]
    """(sample,): the same of the image after."""

    @property
    def accuracy(self) -> float:
        """The share of images that are right after the attack."""
        return float(self.right.mean())

    @property
    def clean_accuracy(self) -> float:
        """The share of images that were right before."""
        return float(self.clean_right.mean())


def attack(
    model: Model,
    images: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any] | Sequence[int],
    how: str | Kernel = "pgd",
    *,
    eps: float | str = "seed",
    normalise: Normalise = None,
    seed: int = 0,
    index: Sequence[int] | None = None,
    batch_size: int = 256,
    **settings: Any,
) -> Attacked:
    """Attack a classifier within eps of every pixel (L-infinity), and tell what became of each image.

    Images are pixels in [0, 1], moved and clipped there; the model gets them through `normalise`. What is drawn for an
    image depends on the seed and on its number in `index` alone. The model keeps its weights, gradients, mode and
    random numbers: see `waterjar.probe`. A model that is no network and no method of one is called as it is.

    Parameters
    ----------
    model : images -> logits (sample, class), or a tuple whose first part these are.
    images : (sample, channel, row, column), or any shape behind the sample. labels : (sample,).
    how : the name of an attack, or a function of your own with the arguments of the `attack` of any file here.
    eps : in pixels: a number, a fraction such as "8/255", or a name: `seed` is 0.03, `standard` 8/255.
    normalise : (mean, std) by channel, or a function; None where the model takes pixels.
    index : the numbers of the images in their data set; their places here by default.
    settings : those of the attack: steps, restarts, queries ...

    >>> sees_brightness = lambda x: torch.stack([x.mean((1, 2, 3)), 1 - x.mean((1, 2, 3))], 1)
    >>> found = attack(sees_brightness, torch.full((2, 1, 2, 2), 0.52), [0, 0], "fgsm", eps=0.03)
    >>> found.clean_accuracy, found.accuracy
    (1.0, 0.0)
    """
    name, kernel = kernel_of(how, settings)
    size, shown = radius(eps), shown_eps(eps)
    pixels = checked_images(images)
    wanted = checked_labels(labels, len(pixels))
    places = checked_index(index, len(pixels))
    if batch_size < 1:
        raise WaterjarError(f"batch_size={batch_size}: expected 1 or more")
    made: list[tuple[Tensor, ...]] = []
    with room(model, normalise, pixels, seed) as victim:
        for rows in torch.split(torch.arange(len(pixels)), batch_size):
            batch, own = pixels[rows].to(victim.device), wanted[rows].to(victim.device)
            before = judged(victim, batch, own)
            draws = Draws(seed, places[rows.numpy()], "attack", name)
            after = kernel(victim, batch, own, eps=size, draws=draws, **settings).detach()
            _check_inside(after, batch, size, name)
            made.append((after, *before, *judged(victim, after, own)))
    columns = [torch.cat([part.cpu() for part in one]) for one in zip(*made, strict=True)]
    after, clean_right, clean_margin, right, margins = columns
    return Attacked(
        name,
        shown,
        pixels.cpu(),
        after,
        clean_right.numpy(),
        right.numpy(),
        clean_margin.double().numpy(),
        margins.double().numpy(),
    )


@contextlib.contextmanager
def room(model: Model, normalise: Normalise, images: Tensor, seed: int) -> Iterator[Victim]:
    """A victim that may be asked anything: inside, nothing of the model or of random numbers outside is touched."""
    device = place_of(model) or images.device
    with own_randomness(seed, device):  # copied in here: gradients are on, also within inference_mode
        yield Victim(model, normalise, device)


def judged(victim: Victim, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Whether the model is right, and the largest other logit less that of the label, (sample,) each."""
    with torch.no_grad():
        logits = victim.logits(images)
        return is_right(logits, labels), margin(logits, labels)


def worst(found: Sequence[Attacked]) -> Attacked:
    """The worst of several attacks on the same images, image by image.

    An image is right if it was right before and is so after every attack. Its image is one that is misclassified, if
    there is any, and of these, or else of all, that of the largest margin.
    """
    if not found:
        raise WaterjarError("there is no attack to take the worst of: expected at least one")
    first = found[0]
    for one in found:
        if one.clean.shape != first.clean.shape or one.eps != first.eps or not torch.equal(one.clean, first.clean):
            raise WaterjarError(f"{first.how} and {one.how} are not of the same images and the same eps")
    right = np.stack([first.clean_right, *(one.right for one in found)])
    margins = np.stack([first.clean_margin, *(one.margin for one in found)])
    score = np.nan_to_num(margins, nan=np.inf)
    choice = np.where(right & ~right.all(0), -np.inf, score).argmax(0)
    images = torch.stack([first.clean, *(one.images for one in found)])
    rows = np.arange(len(choice))
    return Attacked(
        "worst",
        first.eps,
        first.clean,
        images[torch.from_numpy(choice), torch.from_numpy(rows)],
        first.clean_right,
        np.asarray(right.all(0)),
        first.clean_margin,
        margins[choice, rows],
    )


def shown_eps(eps: float | str) -> str:
    """How a radius is written in labels.

    >>> shown_eps(0.03), shown_eps("standard"), shown_eps("seed")
    ('0.03', '8/255', '0.03')
    """
    return NAMED.get(eps, eps) if isinstance(eps, str) else f"{eps:g}"


def kernel_of(how: str | Kernel, settings: dict[str, Any]) -> tuple[str, Kernel]:
    """Name and function of an attack; settings that it does not have are refused."""
    kernel: Kernel
    if isinstance(how, str):
        name, kernel = how, SHELF.module(how).attack
    elif callable(how):
        name, kernel = getattr(how, "__name__", type(how).__name__), how
    else:
        raise WaterjarError(f"how={how!r}: expected the name of an attack, or a function")
    parameters = inspect.signature(kernel).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for setting in settings:
            if setting not in parameters or setting in _GIVEN:
                raise unknown_name(f"{name}: setting", setting, [one for one in parameters if one not in _GIVEN])
    return name, kernel


def _check_inside(after: Tensor, before: Tensor, eps: float, name: str) -> None:
    """Refuse what an attack must not do: it would be taken for a weakness of the model."""
    slack = 4 * torch.finfo(before.dtype).eps
    if after.shape != before.shape:
        raise WaterjarError(f"{name} gives images of shape {tuple(after.shape)}; expected {tuple(before.shape)}")
    far, low, high = float((after - before).abs().max()), float(after.min()), float(after.max())
    if not (far <= eps + slack and low >= 0.0 and high <= 1.0):
        raise WaterjarError(
            f"{name} moves a pixel by {far:g}, to between {low:g} and {high:g}: expected at most eps={eps:g}, in [0, 1]"
        )
