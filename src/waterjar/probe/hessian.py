"""Sharpness: the largest eigenvalue of the Hessian of the loss, by power iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.probe.untouched import device_of, own_randomness, private_copy

Loss = Callable[[Tensor, Tensor], Tensor]
"""outputs, targets -> mean loss of the batch."""

Vector = list[Tensor]
"""One tensor per trained parameter."""


def sharpness(
    network: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    seed: int,
    loss: Loss = functional.cross_entropy,
    tolerance: float = 1e-4,
    max_iterations: int = 200,
    batch_size: int = 256,
) -> Result:
    """Largest (not largest in magnitude) eigenvalue of the Hessian of the mean loss, in evaluation mode.

    Power iteration with Hessian-vector products (Pearlmutter 1994) finds the eigenvalue largest in magnitude. Where
    that is negative, a second one on H shifted by it finds the largest. It ends when the Rayleigh quotient changes by
    less than `tolerance` of the magnitude; without that in `max_iterations` the result is `never_reached`, and its note
    has the last estimate. In evaluation mode dropout is off and batch statistics are fixed: the loss is a function of
    the weights alone.

    The network is not touched: see `waterjar.probe`. The same seed gives the same start and result.

    Parameters
    ----------
    inputs : (sample, ...), targets : (sample, ...), as network and loss take them; the Hessian is that of their mean.
    """
    if len(inputs) != len(targets) or not len(inputs):
        raise WaterjarError(f"{len(inputs)} inputs, {len(targets)} targets: as many of each, and some, would be right")
    if tolerance <= 0.0 or max_iterations < 2 or batch_size < 1:
        raise WaterjarError("tolerance above 0, max_iterations of 2 or more and batch_size of 1 or more would be right")
    device = device_of(network)
    with own_randomness(seed, device), sdpa_kernel(SDPBackend.MATH):  # other attention kernels have no 2nd derivative
        twin = private_copy(network).eval()
        trained: Vector = [parameter for parameter in twin.parameters() if parameter.requires_grad]
        if not trained:
            raise WaterjarError("no parameter of the network is trained: the loss has no Hessian")
        data = [
            (part.detach().clone().to(device), wanted.detach().clone().to(device))
            for part, wanted in zip(torch.split(inputs, batch_size), torch.split(targets, batch_size), strict=True)
        ]

        def product(vector: Vector) -> Vector:
            return _hessian_product(twin, trained, data, loss, vector)

        start = _start(trained, seed)
        value, turns, settled = _power(product, start, 0.0, tolerance, max_iterations)
        if settled and value < 0.0:
            shifted, more, settled = _power(product, start, value, tolerance, max_iterations)
            value, turns = shifted, turns + more
    n = len(inputs)
    if not np.isfinite(value):
        return Result.missing("not_a_number", "the loss or its derivatives are not finite", n=n)
    if not settled:
        return Result.missing(
            "never_reached", f"{value:g} after {turns} iterations, not settled yet", n=n, censored=True
        )
    return Result(value, n=n, note=f"{turns} iterations")


def _hessian_product(
    network: nn.Module, trained: Vector, data: list[tuple[Tensor, Tensor]], loss: Loss, vector: Vector
) -> Vector:
    """H v of the mean over all samples, batch by batch."""
    total = [torch.zeros_like(parameter) for parameter in trained]
    count = sum(len(part) for part, _ in data)
    for part, wanted in data:
        slope = torch.autograd.grad(loss(network(part), wanted), trained, create_graph=True, allow_unused=True)
        along = [(g * v).sum() for g, v in zip(slope, vector, strict=True) if g is not None and g.requires_grad]
        if not along:
            continue  # a loss that is linear in the weights: its Hessian is 0
        found = torch.autograd.grad(torch.stack(along).sum(), trained, allow_unused=True)
        for i, second in enumerate(found):
            if second is not None:
                total[i] += second.detach() * (len(part) / count)
    return total


def _power(
    product: Callable[[Vector], Vector], start: Vector, shift: float, tolerance: float, max_iterations: int
) -> tuple[float, int, bool]:
    """The eigenvalue of H whose distance from `shift` is largest, iterations taken, and whether it settled."""
    vector, before = _scaled(start, _length(start)), float("nan")
    value = before
    for turn in range(1, max_iterations + 1):
        image = [h - shift * v for h, v in zip(product(vector), vector, strict=True)]
        value, length = _dot(image, vector) + shift, _length(image)
        if not np.isfinite(value) or length == 0.0:  # nothing left: the vector is in the null space of H - shift
            return value, turn, True
        if abs(value - before) <= tolerance * max(abs(value), abs(shift)):
            return value, turn, True
        vector, before = _scaled(image, length), value
    return value, max_iterations, False


def _start(trained: Vector, seed: int) -> Vector:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device) for p in trained]


def _dot(a: Vector, b: Vector) -> float:
    return sum(float((x.double() * y.double()).sum()) for x, y in zip(a, b, strict=True))


def _length(vector: Vector) -> float:
    return float(np.sqrt(_dot(vector, vector)))


def _scaled(vector: Vector, length: float) -> Vector:
    return [part / length for part in vector]
