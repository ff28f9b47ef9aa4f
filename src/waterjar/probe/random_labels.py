"""The random-label probe: how long a network, as it is now, takes to learn something new."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError
from waterjar.probe.untouched import device_of, own_randomness, private_copy


@dataclass(frozen=True)
class RandomLabelFit:
    """How a copy of the network fitted random labels."""

    epochs: Result
    """The first epoch at which the target was reached; censored where it never was."""
    accuracy: NDArray[np.float64]
    """(epoch): on the random labels, before the first epoch and after each."""


def random_label_probe(
    network: nn.Module,
    inputs: Tensor,
    *,
    n_classes: int,
    seed: int,
    target: float = 0.95,
    max_epochs: int = 100,
    lr: float = 0.01,
    momentum: float = 0.9,
    batch_size: int = 128,
) -> RandomLabelFit:
    """Epochs of SGD that a copy of the network takes to fit fresh random labels (Lyle et al. 2023, sec. 3).

    Labels are drawn evenly from `n_classes` and shuffled: they have nothing to do with the inputs, so that only the
    ability to learn counts, not what was learned. The copy starts from the network's weights with a new optimiser and
    trains all parameters that are trained. The accuracy is taken in evaluation mode over all inputs after each epoch.
    A network that already agrees with the labels by chance takes 0 epochs; one that does not get there in `max_epochs`
    is `never_reached` (censored), one whose loss is not finite `not_a_number`.

    The network is not touched: see `waterjar.probe`. The same seed gives the same labels, order and result.

    Parameters
    ----------
    inputs : (sample, ...), as the network takes them.
    n_classes : at most the number of outputs.
    target : share of random labels to fit.
    """
    _check(inputs, n_classes, target, max_epochs, batch_size)
    device, count = device_of(network), len(inputs)
    with own_randomness(seed, device):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        labels = torch.from_numpy(rng.permutation(np.arange(count) % n_classes))
        twin = private_copy(network)
        trained = [parameter for parameter in twin.parameters() if parameter.requires_grad]
        if not trained:
            raise WaterjarError("no parameter of the network is trained: there is nothing to fit")
        optimiser = torch.optim.SGD(trained, lr=lr, momentum=momentum)
        inside = inputs.detach().clone()  # also out of inference mode
        curve = [_accuracy(twin, inside, labels, batch_size, device)]
        for _ in range(max_epochs):
            if curve[-1] >= target:
                break
            order = torch.from_numpy(rng.permutation(count))
            if not _epoch(twin, optimiser, inside, labels, _batches(order, batch_size), device):
                lost = Result.missing("not_a_number", f"the loss diverged in epoch {len(curve)}", n=count)
                return RandomLabelFit(lost, np.array(curve))
            curve.append(_accuracy(twin, inside, labels, batch_size, device))
    if curve[-1] >= target:
        return RandomLabelFit(Result(float(len(curve) - 1), n=count), np.array(curve))
    note = f"{target} was not reached in {max_epochs} epochs"
    return RandomLabelFit(Result.missing("never_reached", note, n=count, censored=True), np.array(curve))


def _check(inputs: Tensor, n_classes: int, target: float, max_epochs: int, batch_size: int) -> None:
    if n_classes < 2 or len(inputs) < n_classes:
        raise WaterjarError(f"{len(inputs)} inputs, n_classes={n_classes}: at least 2 classes, and an input of each")
    if not 0.0 < target <= 1.0:
        raise WaterjarError(f"target={target}: expected a share above 0, at most 1")
    if max_epochs < 1 or batch_size < 1:
        raise WaterjarError(f"max_epochs={max_epochs}, batch_size={batch_size}: expected 1 or more")


def _check_outputs(outputs: Tensor, n_classes: int) -> None:
    if outputs.ndim != 2 or outputs.shape[1] < n_classes:
        raise WaterjarError(
            f"n_classes={n_classes}, but the network gives {tuple(outputs.shape)} for {len(outputs)} inputs: "
            "expected (input, class) with an output of each class"
        )


def _batches(order: Tensor, size: int) -> list[Tensor]:
    """A single sample that is left over joins the batch before: batch normalisation cannot train on one."""
    parts = list(torch.split(order, size))
    if len(parts) > 1 and len(parts[-1]) == 1 and size > 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def _epoch(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    inputs: Tensor,
    labels: Tensor,
    batches: list[Tensor],
    device: torch.device,
) -> bool:
    """One pass in training mode; whether the loss stayed finite."""
    network.train()
    for rows in batches:
        outputs = network(inputs[rows.to(inputs.device)].to(device))
        loss = functional.cross_entropy(outputs, labels[rows].to(device))
        if not torch.isfinite(loss):
            return False
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return True


def _accuracy(network: nn.Module, inputs: Tensor, labels: Tensor, batch_size: int, device: torch.device) -> float:
    network.eval()
    right = 0
    with torch.no_grad():
        for rows in torch.split(torch.arange(len(inputs)), batch_size):
            outputs = network(inputs[rows.to(inputs.device)].to(device))
            _check_outputs(outputs, int(labels.max()) + 1)
            right += int((outputs.argmax(dim=1).cpu() == labels[rows]).sum())
    return right / len(inputs)
