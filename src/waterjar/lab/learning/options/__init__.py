"""What a repeat does beside descending its objective, one option a file, found by module name; any number compose.

An option is a module with a pydantic `Settings` and `build(settings, context) -> Option`, or one that only changes the
network, with `network_settings(settings)`. Its rule is written once, over (repeat, ...): an engine that trains one
repeat after the other calls it with one repeat at a time, one that trains all at once with all of them. Randomness is a
hash of the repeat's seed and the moment, so that neither changes what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterjar.errors import WaterjarError
from waterjar.lab.learning.options._option import Batch, Batches, Context, Images, Option, Position, Rows
from waterjar.run.shelf import SHELVES

__all__ = [
    "SHELF",
    "Batch",
    "Batches",
    "Context",
    "Images",
    "Option",
    "Position",
    "Rows",
    "make",
    "names",
    "network_settings",
    "parse",
]


SHELF = SHELVES["options"]
names, parse = SHELF.names, SHELF.parse


def network_settings(chosen: Sequence[tuple[str, Mapping[str, object]]]) -> dict[str, object]:
    """What the chosen options (name, settings) change in the network's settings.

    >>> network_settings([("l2_init", {}), ("layer_norm", {})])
    {'layer_norm': True}
    """
    found: dict[str, object] = {}
    for name, settings in chosen:
        module = SHELF.module(name)
        if hasattr(module, "network_settings"):
            found |= module.network_settings(parse(name, settings))
    return found


def make(chosen: Sequence[tuple[str, Mapping[str, object]]], context: Context) -> dict[str, Option]:
    """The chosen options (name, settings) by name, in their order; without those that only change the network."""
    if len({name for name, _ in chosen}) < len(chosen):
        raise WaterjarError(f"options {[name for name, _ in chosen]}: expected each at most once")
    made: dict[str, Option] = {}
    for name, settings in chosen:
        module = SHELF.module(name)
        if hasattr(module, "build"):
            made[name] = module.build(parse(name, settings), context)
    return made
