"""Networks of the binary-task experiment, one a file, found by module name; those of `lab.networks` are found, too.

A network here has no buffers: a running average would be shared between repeats, or follow the last task.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import BaseModel

from waterjar.errors import WaterjarError
from waterjar.lab import networks as lab_networks
from waterjar.lab.counter_hash import hash_words
from waterjar.lab.networks import ImageShape, Network
from waterjar.lab.networks._initialisation import initialise
from waterjar.run.faults import Behind, parse_settings
from waterjar.run.shelf import Shelf

__all__ = ["behind", "build", "names", "parse", "settings_of"]

_OWN = Shelf("", "network", __name__)


def names() -> tuple[str, ...]:
    """The networks there are: ours, then those of the shelf, from outside or not."""
    own = _OWN.names()
    return own + tuple(name for name in lab_networks.names() if name not in own)


def _shelf_of(name: str) -> Shelf:
    if name not in _OWN.names():
        return lab_networks.SHELF
    lab_networks.SHELF.tell_refusals(name)  # another package's of that name is not the one that is meant
    return _OWN


def settings_of(name: str) -> type[BaseModel]:
    """What can be set of a network."""
    shelf = _shelf_of(name)
    shelf.check(name, also=_OWN.names())
    found: type[BaseModel] = shelf.module(name).Settings
    return found


def behind(name: object, at: str) -> Behind:
    """What stands behind a name in a study file."""
    return _shelf_of(str(name)).behind(name, at, also=_OWN.names())


def parse(name: str, settings: Mapping[str, object]) -> BaseModel:
    """The settings of a network, validated; nothing is built."""
    return parse_settings(settings_of(name), settings, f"network '{name}'")


def build(name: str, *, n_classes: int, image_shape: ImageShape, seed: int, **settings: object) -> Network:
    """A network by its name, on the CPU; its weights are a function of `seed` and of nothing else.

    >>> network = build("cnn", n_classes=2, image_shape=(1, 28, 28), seed=0)
    >>> network.layer_names
    ('conv1', 'conv2', 'conv3', 'dense1', 'penultimate')
    >>> sum(weights.numel() for weights in network.parameters())
    31746
    """
    parsed = parse(name, settings)
    if name in _OWN.names():
        module = _OWN.module(name)
        with torch.device("meta"):
            network: Network = module.assemble(parsed, n_classes, image_shape)
        network.to_empty(device="cpu")
        initialise(network, torch.Generator().manual_seed(int(hash_words("network weights", seed))))
    else:
        network = lab_networks.build(name, n_classes=n_classes, image_shape=image_shape, seed=seed, **settings)
    if any(True for _ in network.buffers()):
        raise WaterjarError(
            f"network '{name}' ({parsed}) keeps running averages, which repeats trained at once cannot have: "
            "choose one without batch norm"
        )
    return network
