"""Online elastic weight consolidation: `sgd` with the option `ewc_on`."""

from __future__ import annotations

from typing import Any

from waterjar.lab.learners._protocol import Preset
from waterjar.lab.learners._single import DescentSettings, SingleLearner
from waterjar.lab.learning.options import ewc_on
from waterjar.lab.networks import Network


class Settings(DescentSettings, ewc_on.Settings):
    """The update rule and the springs."""


PRESETS = {
    "ewc_on_einstellung": Preset(
        settings={
            "e_lambda": 5.0,
            "gamma": 1.0,
            "lr": 0.01,
            "penalty": "mammoth",
            "fisher": "label_weighted",
        },
        training={"n_epochs": 100, "batch_size": 64},
    )
}


def build(network: Network, settings: Settings, **how: Any) -> SingleLearner:
    """With springs."""
    own = settings.model_dump(include=set(ewc_on.Settings.model_fields))
    return SingleLearner("ewc_on", network, settings, own=[("ewc_on", own)], **how)
