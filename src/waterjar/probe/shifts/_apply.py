"""Applying a shift by its name, at a severity of a ladder, to arrays or tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.errors import WaterjarError, unknown_name
from waterjar.probe.draws import Draws
from waterjar.probe.pixels import checked_images, checked_index
from waterjar.run.shelf import Shelf

SEVERITIES = (1, 2, 3, 4, 5)
OWN = "own"
"""The ladder of functions that are passed: their levels are the severities themselves."""

Shift = Callable[[Tensor, Any, Draws], Tensor]
"""shift(images (sample, channel, row, column), level, draws) -> images."""
Images = TypeVar("Images", Tensor, NDArray[Any])

SHELF = Shelf("", "shift", "waterjar.probe.shifts")


def ladders_of(name: str) -> tuple[str, ...]:
    """The ladders that a shift has.

    >>> ladders_of("rotation")
    ('seed',)
    """
    return tuple(SHELF.module(name).LADDERS)


def on_ladder(ladder: str) -> tuple[str, ...]:
    """The shifts that a ladder has.

    >>> on_ladder("cifar_c")
    ('blur', 'contrast', 'gaussian_noise')
    """
    known = {name: ladders_of(name) for name in SHELF.names()}
    found = tuple(name for name, ladders in known.items() if ladder in ladders)
    if not found:
        raise unknown_name("ladder", ladder, dict.fromkeys(one for ladders in known.values() for one in ladders))
    return found


def shift(
    images: Images,
    how: str | Shift,
    severity: int = 3,
    *,
    ladder: str = "seed",
    seed: int = 0,
    index: Sequence[int] | NDArray[np.int64] | None = None,
) -> Images:
    """Shifted images, of the type that was given; those given are not changed.

    Parameters
    ----------
    images : (sample, channel, row, column), or (sample, row, column), pixels in [0, 1].
    how : the name of a shift, or a function (images, severity, draws) -> images.
    severity : 1 to 5.
    ladder : `seed` or `cifar_c`; of a function it counts for nothing.
    index : the numbers of the images in their data set; their places here by default.

    >>> grey = np.full((1, 1, 4, 4), 0.5)
    >>> bool(np.allclose(shift(grey, "contrast", ladder="cifar_c"), grey))
    True
    """
    name, function, level = _level(how, severity, ladder)
    given = checked_images(images, single=False)
    if given.ndim not in (3, 4):
        raise WaterjarError(f"images have shape {tuple(given.shape)}: expected (sample, channel, row, column)")
    draws = Draws(seed, checked_index(index, len(given)), "shift", name, severity)
    whole = given if given.ndim == 4 else given[:, None]
    with torch.no_grad():
        made = function(whole, level, draws)
    if not isinstance(made, Tensor) or made.shape != whole.shape:
        shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
        raise WaterjarError(f"shift '{name}' gives {shape}; expected images of shape {tuple(whole.shape)}")
    found = made.clamp(0.0, 1.0).reshape(given.shape).to(given.dtype)
    return found if isinstance(images, Tensor) else found.numpy().astype(images.dtype)


def _level(how: str | Shift, severity: int, ladder: str) -> tuple[str, Shift, Any]:
    """The name of a shift, its function, and what the severity means to it."""
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise WaterjarError(f"severity={severity!r}: expected a whole number from 1 to 5")
    if not isinstance(how, str):
        if not callable(how):
            raise WaterjarError(f"how={how!r}: expected the name of a shift, or a function")
        return getattr(how, "__name__", type(how).__name__), how, int(severity)
    ladders = SHELF.module(how).LADDERS
    if ladder not in ladders:
        raise unknown_name(f"shift '{how}': ladder", ladder, ladders)
    function, levels = ladders[ladder]
    return how, function, levels[int(severity) - 1]
