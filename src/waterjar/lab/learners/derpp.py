"""Dark experience replay: `sgd` with the option `derpp`, whose memory is shown every epoch of a task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from waterjar.lab.learners._protocol import Preset
from waterjar.lab.learners._single import SingleLearner
from waterjar.lab.learners.er import ReplaySettings, memory_of
from waterjar.lab.learning.segments import Distance
from waterjar.lab.networks import Network


class Settings(ReplaySettings):
    """The update rule, the memory and the two weights."""

    alpha: Annotated[float, Field(ge=0.0)] = 0.1
    """Weight of the distance to the old logits."""
    beta: Annotated[float, Field(ge=0.0)] = 0.5
    """Weight of the cross-entropy on replayed labels."""
    distance: Distance = "mean"
    """|z - h|^2 over classes."""
    forward: Literal["auto", "separate", "together"] = "auto"


PRESETS = {
    "derpp_einstellung": Preset(
        settings={"alpha": 0.1, "beta": 0.5, "buffer_size": 500, "lr": 0.01},
        training={"n_epochs": 100, "batch_size": 32},
    )
}


def build(network: Network, settings: Settings, **how: Any) -> SingleLearner:
    """With a memory that keeps logits, too."""
    own = settings.model_dump(include={"alpha", "beta", "distance", "forward"})
    return SingleLearner("derpp", network, settings, own=[("derpp", {**memory_of(settings), **own})], **how)
