"""Noise of equal eps: every pixel moved by +eps or -eps, by the toss of a coin.

No attack: what an attack has to be better than. Its images lie in the corners of the ball, as those of attacks do, so
that they are as far away in every norm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.probe.attacks._ball import Ball
from waterjar.probe.attacks._victim import Victim
from waterjar.probe.draws import Draws

WHITE_BOX = None
"""Neither white nor black box: it asks for nothing."""


def attack(victim: Victim, images: Tensor, labels: Tensor, *, eps: float, draws: Draws) -> Tensor:
    """(sample, ...) -> (sample, ...)."""
    signs = torch.from_numpy(draws.uniform(images.shape[1:], -1, 1)).to(images).sign()
    return Ball(images, eps).into(images + eps * signs)
