"""Experience replay: `sgd` with the option `replay`, whose memory is shown every epoch of a task."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from waterjar.lab.learners._single import DescentSettings, SingleLearner
from waterjar.lab.learning.memory import BufferType
from waterjar.lab.learning.options.replay import When
from waterjar.lab.networks import Network


class ReplaySettings(DescentSettings):
    """The update rule and the memory."""

    buffer_size: Annotated[int, Field(ge=1)] = 500
    minibatch_size: Annotated[int, Field(ge=1)] | None = None
    """Examples of a draw; None for as many as the batch has."""
    buffer_dtype: BufferType = "float32"
    replay: When = "always"
    """From the second batch on, as in the paper; or only once a second task has begun (the memory fills either way)."""


class Settings(ReplaySettings):
    """As they are called in papers and in their code."""


def memory_of(settings: ReplaySettings) -> dict[str, Any]:
    """Settings of the option's memory."""
    return {
        "size": settings.buffer_size,
        "samples": settings.minibatch_size,
        "dtype": settings.buffer_dtype,
        "replay": settings.replay,
        "offered": "every_epoch",
    }


def build(network: Network, settings: Settings, **how: Any) -> SingleLearner:
    """With a memory."""
    return SingleLearner("er", network, settings, own=[("replay", memory_of(settings))], **how)
