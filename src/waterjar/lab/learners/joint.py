"""All tasks at once, the upper bound of continual learning: the update of `sgd`, on mixed batches.

The mixing is done by the scenario (`interleaved`), which reads `wants`.
"""

from __future__ import annotations

from typing import Any

from waterjar.lab.learners._single import DescentSettings, SingleLearner
from waterjar.lab.networks import Network


class Settings(DescentSettings):
    """As for `sgd`."""


def build(network: Network, settings: Settings, **how: Any) -> SingleLearner:
    """`sgd` under another name, which wants all tasks mixed."""
    return SingleLearner("joint", network, settings, wants="joint", **how)
