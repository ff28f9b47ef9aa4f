"""Plain stochastic gradient descent on whatever comes: the "naive" learner, which keeps nothing of earlier tasks."""

from __future__ import annotations

from typing import Any

from waterjar.lab.learners._single import DescentSettings, SingleLearner
from waterjar.lab.networks import Network


class Settings(DescentSettings):
    """The update rule, nothing more."""


def build(network: Network, settings: Settings, **how: Any) -> SingleLearner:
    """θ -= lr ∇ mean cross-entropy of the batch."""
    return SingleLearner("sgd", network, settings, **how)
