"""The diagonal of the Fisher information of a classifier, in the variants that are in use.

With g(x, y) = ∇ log p(y | x) and n examples (x_i, y_i), for each parameter:

| variant | F | in use |
|---|---|---|
| exact | 1/n Σ_i Σ_y p(y given x_i) g(x_i, y)^2 | the definition, over the training inputs |
| empirical | 1/n Σ_i g(x_i, y_i)^2 | the training labels in place of the model's |
| label_weighted | 1/n Σ_i p(y_i given x_i) g(x_i, y_i)^2 | Mammoth: of the exact sum, only the term of the label |
| batch | 1/k Σ_b (mean of g over batch b)^2 | Avalanche: k batches; smaller by up to the batch size |

The choice changes results more than most hyper-parameters do: van de Ven, "On the computation of the Fisher
information in continual learning" (2025). The exact one costs as many passes as there are classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from waterjar.errors import WaterjarError
from waterjar.lab.networks import Network

FisherVariant = Literal["exact", "empirical", "label_weighted", "batch"]

# Gradients of single examples are large: as many at a time as fit in here.
_BYTES_AT_ONCE = 256 * 2**20


def diagonal_fisher(
    network: Network,
    batches: Iterable[tuple[Tensor, Tensor]],
    variant: FisherVariant = "empirical",
    limit: int | None = None,
) -> list[Tensor]:
    """One tensor a parameter, in the order of `network.parameters()`, over the first `limit` examples (or all).

    The network is measured as it is evaluated: in eval mode, batch norm with its running statistics. It is left
    in the mode it was in. (Mammoth passes single images in training mode: with batch norm, another function.)
    """
    was_training = network.training
    network.eval()
    try:
        chosen = _first(batches, limit)
        parts = _batch_squares(network, chosen) if variant == "batch" else _example_squares(network, chosen, variant)
        total = [torch.zeros_like(parameter, requires_grad=False) for parameter in network.parameters()]
        count = 0
        for squares, size in parts:
            torch._foreach_add_(total, squares)
            count += size
    finally:
        network.train(was_training)
    if count == 0:
        raise WaterjarError("the Fisher information needs examples of the task that ended: there were none")
    torch._foreach_div_(total, float(count))
    return total


def passes_per_example(variant: FisherVariant, n_classes: int) -> int:
    """How often an example goes forward and backward: the exact variant has a gradient per class.

    >>> passes_per_example("exact", 60), passes_per_example("empirical", 60)
    (60, 1)
    """
    return n_classes if variant == "exact" else 1


def _first(batches: Iterable[tuple[Tensor, Tensor]], limit: int | None) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches up to `limit` examples; the last may be cut."""
    left = limit
    for inputs, labels in batches:
        if left is not None and len(labels) >= left:
            yield inputs[:left], labels[:left]
            return
        yield inputs, labels
        left = None if left is None else left - len(labels)


def _batch_squares(network: Network, batches: Iterable[tuple[Tensor, Tensor]]) -> Iterator[tuple[list[Tensor], int]]:
    parameters = list(network.parameters())
    for inputs, labels in batches:
        loss = functional.cross_entropy(network(inputs), labels)
        yield [gradient.square() for gradient in torch.autograd.grad(loss, parameters)], 1


def _example_squares(
    network: Network, batches: Iterable[tuple[Tensor, Tensor]], variant: FisherVariant
) -> Iterator[tuple[list[Tensor], int]]:
    """Sums of weighted squared gradients of single examples, over a few examples at a time."""
    parameters = {name: parameter.detach() for name, parameter in network.named_parameters()}
    buffers = dict(network.named_buffers())

    def surprise(weights: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(network, (weights, buffers), (image[None],))
        return functional.cross_entropy(logits, label[None])

    per_example = vmap(grad_and_value(surprise), in_dims=(None, 0, 0))

    def squares(images: Tensor, labels: Tensor, weigh: bool) -> list[Tensor]:
        with sdpa_kernel(SDPBackend.MATH):  # the only kind of attention that vmap can batch
            gradients, losses = per_example(parameters, images, labels)
        weight = torch.exp(-losses) if weigh else torch.ones_like(losses)
        return [torch.einsum("b,b...->...", weight, gradients[name].square()) for name in parameters]

    example_bytes = sum(parameter.nbytes for parameter in parameters.values())
    chunk = max(1, _BYTES_AT_ONCE // example_bytes)
    for inputs, labels in batches:
        for start in range(0, len(labels), chunk):
            images, given = inputs[start : start + chunk], labels[start : start + chunk]
            if variant == "exact":
                total = squares(images, torch.zeros_like(given), weigh=True)
                for label in range(1, network.n_classes):
                    torch._foreach_add_(total, squares(images, torch.full_like(given, label), weigh=True))
                yield total, len(given)
            else:
                yield squares(images, given, weigh=variant == "label_weighted"), len(given)
