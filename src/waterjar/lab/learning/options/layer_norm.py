"""Layer norm in the network (Ba, Kiros & Hinton, 2016): before each ReLU, over the units of one image alone.

Of maps it is over channels and pixels together, with a scale and a shift per channel. It slows the loss of plasticity
down (Lyle et al., "Understanding plasticity in neural networks", ICML 2023). Experts have it, too.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """There is nothing to set."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def network_settings(settings: Settings) -> dict[str, object]:
    """What the network is told."""
    return {"layer_norm": True}
