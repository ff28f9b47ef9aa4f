"""FGSM, the fast gradient sign method: one step of length eps along the sign of the slope.

x' = clip(x + eps sign d loss(x, y) / dx, 0, 1), loss the cross-entropy (Goodfellow, Shlens & Szegedy 2015, eq. 3; the
seed document, 4.2). It is weak: what withstands it may fall to more steps. Its image counts also where it is right by
luck and the clean one was wrong, as in the seed.
"""

from __future__ import annotations

from torch import Tensor

from waterjar.probe.attacks._ball import Ball
from waterjar.probe.attacks._losses import cross_entropy
from waterjar.probe.attacks._victim import Victim
from waterjar.probe.draws import Draws

WHITE_BOX = True


def attack(victim: Victim, images: Tensor, labels: Tensor, *, eps: float, draws: Draws) -> Tensor:
    """(sample, ...) -> (sample, ...): nothing is drawn."""
    _, slope, _ = victim.slope(images, labels, cross_entropy)
    return Ball(images, eps).into(images + eps * slope.sign())
