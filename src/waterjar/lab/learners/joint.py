"""All tasks at once, the upper bound of continual learning: the update of `sgd`, on mixed batches.

The mixing is done by the scenario (`interleaved`), which reads `wants`.
"""

from __future__ import annotations

import torch

from waterjar.lab.learners import sgd
from waterjar.lab.learners._protocol import Precision
from waterjar.lab.networks import Network


class Settings(sgd.Settings):
    """As for `sgd`."""


def build(network: Network, settings: Settings, *, seed: int, device: torch.device, precision: Precision) -> sgd.Sgd:
    """`sgd` under another name, which wants all tasks mixed."""
    return sgd.Sgd(network, settings, seed=seed, device=device, precision=precision, name="joint", wants="joint")
