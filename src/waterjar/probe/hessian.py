"""Sharpness: the largest eigenvalue of the Hessian of the loss, by Lanczos iteration."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.probe.lanczos import largest_eigenvalue
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

    Found by Lanczos iteration on Hessian-vector products (Pearlmutter 1994); see `largest_eigenvalue`. It is the number
    that "power iteration" is meant to find; that one mixes two eigenvalues of nearly the same size and opposite sign,
    as networks with small weights have them, and cannot tell. Here the value is given only when its residual shows an
    eigenvalue within `tolerance` of it (relative, or within rounding); without that after `max_iterations` products it
    is `never_reached`, and the note has the last estimate and its bound. That no larger eigenvalue exists is sure for
    up to 64 parameters, beyond that as likely as a random start is not orthogonal to its eigenvector. In evaluation
    mode dropout is off and batch statistics are fixed: the loss is a function of the weights alone.

    The network is not touched: see `waterjar.probe`. The same seed gives the same start and result.

    Parameters
    ----------
    inputs : (sample, ...), targets : (sample, ...), as network and loss take them; the Hessian is that of their mean.
    """
    if len(inputs) != len(targets) or not len(inputs):
        raise WaterjarError(f"{len(inputs)} inputs, {len(targets)} targets: expected as many of each, and some")
    if tolerance <= 0.0 or max_iterations < 2 or batch_size < 1:
        raise WaterjarError("expected a tolerance above 0, max_iterations of 2 or more and a batch_size of 1 or more")
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

        def product(flat: Tensor) -> Tensor:
            return _flat(_hessian_product(twin, trained, data, loss, _parts(flat, trained)))

        found = largest_eigenvalue(
            product,
            sum(parameter.numel() for parameter in trained),
            generator=torch.Generator().manual_seed(seed),
            device=device,
            tolerance=tolerance,
            max_products=max_iterations,
            rounding=max(torch.finfo(parameter.dtype).eps for parameter in trained),
        )
    n = len(inputs)
    if not math.isfinite(found.value):
        return Result.missing("not_a_number", "the loss or its derivatives are not finite", n=n)
    if not found.settled:
        note = f"{found.value:g} +- {found.bound:.1g} after {found.products} iterations, not settled yet"
        return Result.missing("never_reached", note, n=n, censored=True)
    return Result(found.value, n=n, note=f"{found.products} iterations")


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


def _parts(flat: Tensor, trained: Vector) -> Vector:
    pieces = torch.split(flat, [parameter.numel() for parameter in trained])
    return [piece.reshape(p.shape).to(p.dtype) for piece, p in zip(pieces, trained, strict=True)]


def _flat(vector: Vector) -> Tensor:
    return torch.cat([part.reshape(-1).double() for part in vector])
