"""What attacks raise: losses of each image by itself, (sample, class), (sample,) -> (sample,)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from waterjar.errors import WaterjarError

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """- log softmax(z)_y. In the end of its range, where a class is certain to the last digit, its slope is 0."""
    return functional.cross_entropy(logits, labels, reduction="none")


def margin(logits: Tensor, labels: Tensor) -> Tensor:
    """The largest other logit less that of the label: above 0 where the image is misclassified.

    >>> margin(torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([0]))
    tensor([2.])
    """
    own = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return others.max(1).values - own


def dlr(logits: Tensor, labels: Tensor) -> Tensor:
    """Difference of logits ratio: - (z_y - max other z) / (z_1st - z_3rd) of the sorted logits (Croce & Hein 2020).

    Neither a shift nor a factor of the logits changes it: saturation of the softmax does not hide its slope.

    >>> dlr(torch.tensor([[4.0, 3.0, 2.0]]), torch.tensor([0]))
    tensor([-0.5000])
    """
    if logits.shape[1] < 3:
        raise WaterjarError(f"the DLR loss needs three classes, and the model has {logits.shape[1]}: take apgd_ce")
    ordered = logits.topk(3, dim=1).values
    return margin(logits, labels) / (ordered[:, 0] - ordered[:, 2]).clamp_min(torch.finfo(logits.dtype).tiny)
