"""An option for binary tasks: weights are pulled to 0."""

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.learning.options import Context, Option


class Settings(BaseModel):
    """How strong the pull is."""

    model_config = ConfigDict(extra="forbid")
    strength: float = Field(0.01, gt=0)


class Decay(Option):
    """g += strength θ."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._strength, self._weights = settings.strength, context.weights

    def regularise(self, gradients: Tensor) -> None:
        """Add the pull to gradients (repeat, param)."""
        gradients.add_(self._weights.values, alpha=self._strength)


build = Decay
