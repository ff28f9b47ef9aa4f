"""What the networks of a run begin as, and how they learn."""

from __future__ import annotations

from waterjar.lab import networks
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.learning.learner import Rule
from waterjar.lab.networks import Network


def rule_of(config: BinaryConfig, *, frozen_features: bool = False, with_options: bool = True) -> Rule:
    """How the learner of a run learns, or one of those that it is held against."""
    training = config.training
    return Rule(
        config.learner,
        config.learner_settings,
        training.optimiser.name,
        training.optimiser.settings,
        (0.0 if frozen_features else training.lr_features, training.lr_readout),
        training.fresh_optimiser,
        options=config.chosen_options if with_options else (),
    )


def first_network(config: BinaryConfig, image_shape: tuple[int, int, int], seed: int) -> Network:
    """The network that a seed begins with."""
    network = networks.build(
        config.network,
        n_classes=config.tasks.classes_per_task,
        image_shape=image_shape,
        seed=seed,
        **config.full_network_settings,
    )
    networks.check_without_averages(network, config.network)
    return network
