"""How much the loss of each sample would change with what each stream hands over."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from waterjar.errors import WaterjarError
from waterjar.probe.collective.adapt import adapt
from waterjar.probe.collective.samples import samples_of
from waterjar.probe.collective.still import measured


def gradient_contributions(collective: Any, data: Any, *, batch_size: int = 256, seed: int = 0) -> NDArray[np.float64]:
    """(sample, stream): the norm of d loss / d pooled output, C_n of the seed document before its mean over samples.

    The loss is the cross-entropy of the collective's logits, sample by sample. Streams under a rule hand over their
    logits, and so do those without pooled features: the gradient is by these. No gradient of the model is touched.

    >>> from waterjar.probe.collective import adapt
    >>> pair = adapt([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)], rule="mean_logit")
    >>> found = gradient_contributions(pair, (torch.zeros(4, 3), [0, 1, 0, 1]))
    >>> found.shape, bool(np.allclose(found[:, 0], found[:, 1]))
    ((4, 2), True)
    """
    collective = adapt(collective)
    samples = samples_of(data)
    found = np.zeros((len(samples), len(collective.streams)))
    with measured(collective.module, seed, gradients=True) as device:
        for rows in samples.batches(batch_size):
            outputs = collective.outputs(samples.rows(rows, device, gradients=True))
            handed = (outputs.pooled if collective.hands_over == "pooled" else None) or outputs.individual
            if handed is None:
                raise WaterjarError(
                    "the model tells neither pooled features nor logits of its streams: no gradient by them"
                )
            parts = [handed[name] for name in collective.streams]
            targets = torch.from_numpy(samples.labels[rows]).to(device)
            loss = functional.cross_entropy(outputs.collective, targets, reduction="sum")
            if not loss.requires_grad or not all(part.requires_grad for part in parts):
                raise WaterjarError(
                    "the answer is cut off from what the streams hand over (a vote, or detached): no gradient by it"
                )
            slopes = torch.autograd.grad(loss, parts, allow_unused=True)
            for column, (name, slope) in enumerate(zip(collective.streams, slopes, strict=True)):
                if slope is None:
                    raise _not_reached(name, collective.hands_over == "pooled" and outputs.pooled is None)
                found[rows, column] = slope.flatten(1).norm(dim=1).double().cpu().numpy()
    return found


def _not_reached(name: str, by_logits: bool) -> WaterjarError:
    """Why there is no slope by what a stream hands over, of which only its logits may be known."""
    if not by_logits:
        return WaterjarError(f"the collective's answer does not depend on what stream '{name}' hands over")
    return WaterjarError(
        "the model tells no pooled features of its streams, and its answer is not made of the logits that it tells of "
        f"'{name}': no gradient by what streams hand over"
    )
