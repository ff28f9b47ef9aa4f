"""Learners: how a network is updated, and what is kept of earlier tasks. One a file, found by module name.

A learner is a module with a pydantic `Settings` and `build(network, settings, *, seed, device, precision)`; if
it takes `more`, too, it can have options beside its own. Published hyper-parameters stand in its `PRESETS`. Randomness
comes from `seed` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, get_args

import torch
from pydantic import BaseModel

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab.learners._protocol import Learner, Observation, Precision, Preset, State, Wants
from waterjar.lab.networks import Network
from waterjar.run.shelf import SHELVES

__all__ = [
    "SHELF",
    "Learner",
    "Observation",
    "Precision",
    "Preset",
    "State",
    "Wants",
    "learner_of",
    "make",
    "names",
    "parse",
    "presets",
]

SHELF = SHELVES["learners"]
names = SHELF.names


def presets(name: str) -> Mapping[str, Preset]:
    """The published settings that a learner brings, by name.

    >>> presets("derpp")["derpp_einstellung"].settings["buffer_size"]
    500
    """
    found: Mapping[str, Preset] = getattr(SHELF.module(name), "PRESETS", {})
    return found


def learner_of(preset: str) -> str:
    """The learner that a preset is of.

    >>> learner_of("derpp_einstellung")
    'derpp'
    """
    owners = {one: name for name in SHELF.modules()[0] for one in presets(name)}
    if preset not in owners:
        raise unknown_name("preset", preset, owners)
    return owners[preset]


def parse(name: str, settings: Mapping[str, object], preset: str | None = None) -> BaseModel:
    """The settings of a learner, validated; those given go before those of the preset. Nothing is built."""
    chosen: Mapping[str, object] = {}
    if preset is not None:
        known = presets(name)
        if preset not in known:
            raise unknown_name(f"learner '{name}': preset", preset, known)
        chosen = known[preset].settings
    parsed: BaseModel = SHELF.parse(name, {**chosen, **settings})
    return parsed


def make(
    name: str,
    network: Network,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    preset: str | None = None,
    options: Sequence[tuple[str, Mapping[str, Any]]] = (),
    **settings: object,
) -> Learner:
    """A learner by its name, with options beside its own; it begins with the weights of `network`.

    >>> from waterjar.lab import networks
    >>> network = networks.build("mlp", n_classes=3, image_shape=(1, 2, 2), seed=0, hidden=(4,))
    >>> learner = make("er", network, seed=0, lr=0.1, buffer_size=10)
    >>> learner.begin_task(0)
    >>> learner.observe(torch.zeros(5, 1, 2, 2), torch.zeros(5, dtype=torch.int64)).replayed
    0
    >>> learner.observe(torch.ones(5, 1, 2, 2), torch.ones(5, dtype=torch.int64)).replayed
    5
    """
    parsed = parse(name, settings, preset)
    if precision not in get_args(Precision):
        raise unknown_name("precision", precision, get_args(Precision))
    build = SHELF.module(name).build
    more = {"more": list(options)} if options else {}
    if more and not {"more", "how"} & signature(build).parameters.keys():
        raise WaterjarError(f"learner '{name}' takes no options, and is given {', '.join(one for one, _ in options)}")
    learner: Learner = build(network, parsed, seed=seed, device=torch.device(device), precision=precision, **more)
    return learner
