"""Networks: images in, logits out, and the features of any layer by name. One a file, found by module name.

All kinds of study take them from here; which one a kind takes unless told stands in its declaration.

A network is a module with a pydantic `Settings` and `assemble(settings, n_classes, image_shape) -> Network`.
None of them has dropout: its masks would come from torch's global generator, and a resumed run would differ.
"""

from __future__ import annotations

import torch

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import hash_words
from waterjar.lab.networks._flops import flops
from waterjar.lab.networks._initialisation import initialise
from waterjar.lab.networks._network import ImageShape, Network, Readout, check_without_averages, normalises_by_batch
from waterjar.run.shelf import SHELVES

__all__ = [
    "SHELF", "ImageShape", "Network", "Readout",
    "build", "check_without_averages", "flops", "names", "normalises_by_batch", "parse",
]  # fmt: skip

SHELF = SHELVES["networks"]
names, parse = SHELF.names, SHELF.parse


def build(
    name: str, *, n_classes: int, image_shape: ImageShape = (3, 32, 32), seed: int, **settings: object
) -> Network:
    """A network by its name, on the CPU; its weights are a function of `seed` and of nothing else.

    The global generators of torch are neither read nor moved. Two networks of one seed that differ in
    `n_classes` share all weights but those of the head.

    >>> network = build("mlp", n_classes=10, image_shape=(1, 4, 4), seed=0, hidden=(8, 8))
    >>> network.layer_names
    ('hidden1', 'penultimate')
    >>> network(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 10])
    """
    parsed = parse(name, settings)
    if n_classes < 1 or len(image_shape) != 3 or min(image_shape) < 1:
        raise WaterjarError(
            f"network '{name}': {n_classes} classes and images of shape {tuple(image_shape)}, where at least "
            "one class and a shape of (channels, height, width) are needed"
        )
    module = SHELF.module(name)
    # Torch's layers draw their first weights from the global generator, unless they have no storage to fill.
    try:
        with torch.device("meta"):
            network: Network = module.assemble(parsed, n_classes, image_shape)
        network.to_empty(device="cpu")
    except (TypeError, RuntimeError, OverflowError, MemoryError) as error:  # torch's various words for "too large"
        why = str(error).partition("\n")[0] or type(error).__name__
        chosen = ", ".join(f"{key}={value!r}" for key, value in parsed)
        raise WaterjarError(
            f"network '{name}' ({chosen}) cannot be built for images of shape {tuple(image_shape)}: {why}"
        ) from error
    generator = torch.Generator().manual_seed(int(hash_words("network weights", seed)))
    initialise(network, generator)
    if network.channels_last:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    return network
