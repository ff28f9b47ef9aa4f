"""APGD on the cross-entropy (Croce & Hein 2020); the walk stands in `_apgd`."""

from __future__ import annotations

from torch import Tensor

from waterjar.probe.attacks._apgd import climb
from waterjar.probe.attacks._losses import cross_entropy
from waterjar.probe.attacks._victim import Victim
from waterjar.probe.draws import Draws

WHITE_BOX = True


def attack(
    victim: Victim,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: Draws,
    steps: int = 100,
    restarts: int = 5,
) -> Tensor:
    """(sample, ...) -> (sample, ...): the worst point of all restarts, image by image."""
    return climb(victim, images, labels, eps=eps, draws=draws, loss=cross_entropy, steps=steps, restarts=restarts)
