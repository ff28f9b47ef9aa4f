"""The best found so far of every image under attack: the first that is misclassified, else that of highest loss."""

from __future__ import annotations

import torch
from torch import Tensor

from waterjar.probe.attacks._losses import Loss
from waterjar.probe.attacks._victim import Victim, is_right


class Candidates:
    """What was tried, image by image; the image itself is the first candidate."""

    def __init__(self, victim: Victim, images: Tensor, labels: Tensor, loss: Loss) -> None:
        with torch.no_grad():
            logits = victim.logits(images)
            self.loss = loss(logits, labels)
        self.images = images.clone()
        self.right = is_right(logits, labels)

    def left(self) -> Tensor:
        """Places of the images that are still classified right."""
        return self.right.nonzero()[:, 0]

    def offer(self, places: Tensor, images: Tensor, losses: Tensor, right: Tensor) -> None:
        """Candidates of the images at `places`, none of which was misclassified before."""
        better = ~right | (losses >= self.loss[places])  # where a loss is 0 to the last digit, later ones are nearer
        kept = places[better]
        self.images[kept] = images[better]
        self.loss[kept] = losses[better]
        self.right[places[~right]] = False
