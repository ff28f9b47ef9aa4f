"""The room of an attack: all images within eps of each pixel, and within [0, 1]."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.draws import Draws

NAMED = {"seed": "0.03", "standard": "8/255"}
"""Radii by name: that of the seed document, and the usual one of CIFAR."""


def radius(eps: float | str) -> float:
    """A radius in pixels of [0, 1], as a number, a fraction in words, or a name.

    >>> radius("8/255") == radius("standard") == 8 / 255
    True
    """
    text = NAMED.get(eps, eps) if isinstance(eps, str) else eps
    try:
        found = float(Fraction(text))
    except (ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise WaterjarError(f"eps={eps!r}: expected a number, a fraction such as '8/255', or seed, standard") from error
    if not 0.0 < found <= 1.0:
        raise WaterjarError(f"eps={eps!r}: expected more than 0 and at most 1, in pixels of [0, 1]")
    return found


class Ball:
    """Images around others: max |x' - x| <= eps and 0 <= x' <= 1, pixel by pixel."""

    def __init__(self, centre: Tensor, eps: float) -> None:
        self.centre, self.eps = centre, eps
        self.low, self.high = (centre - eps).clamp_min(0.0), (centre + eps).clamp_max(1.0)

    def into(self, images: Tensor) -> Tensor:
        """The nearest image inside."""
        return torch.minimum(torch.maximum(images, self.low), self.high)

    def anywhere(self, draws: Draws) -> Tensor:
        """An image drawn evenly from within eps, then put into [0, 1]."""
        moved = draws.uniform(self.centre.shape[1:], -self.eps, self.eps)
        return self.into(self.centre + torch.from_numpy(moved).to(self.centre))

    def of(self, places: Tensor) -> Ball:
        """That of some of the images."""
        return Ball(self.centre[places], self.eps)
