"""Online elastic weight consolidation: parameters that mattered to earlier tasks are held back by springs.

Schwarz et al., "Progress & Compress" (ICML 2018), "online EWC", after Kirkpatrick et al., "Overcoming catastrophic
forgetting in neural networks" (PNAS 2017). After task k, with its Fisher information F_k (diagonal) and parameters θ*:

    F* <- gamma F* + F_k,    anchor <- θ*

and while learning the next, added to the objective:

| penalty | |
|---|---|
| schwarz | lambda / 2  Σ gamma F* (θ - anchor)^2, the paper's |
| mammoth | lambda  Σ F* (θ - anchor)^2, of the code that the preset's lambda is for (Avalanche's, too) |

How F_k is estimated is a choice of its own (`fisher`; see `learning.fisher`). Batch-norm statistics are not parameters,
and are not held back. The learner `rl` is never told a label, so that its information can only be the exact one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab.learning.fisher import FisherVariant, diagonal_fisher, passes_per_example
from waterjar.lab.learning.options._option import Batches, Context, Option


class Settings(BaseModel):
    """The springs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    e_lambda: Annotated[float, Field(ge=0.0)] = 5.0
    """Strength of the springs."""
    gamma: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """What stays of the importances of earlier tasks when a task ends."""
    penalty: Literal["schwarz", "mammoth"] = "schwarz"
    fisher: FisherVariant = "empirical"
    fisher_samples: Annotated[int, Field(ge=1)] | None = None
    """Examples of the ended task that the Fisher information is estimated from; None for all."""


class EwcOn(Option):
    """Importances and anchor (repeat, param); none before the end of the first task."""

    def __init__(self, settings: Settings, context: Context) -> None:
        if context.objective == "rl" and settings.fisher != "exact":
            raise WaterjarError(
                f"option 'ewc_on' with the learner 'rl': fisher '{settings.fisher}' needs labels, which it is never "
                "told: expected fisher: exact"
            )
        self._settings = settings
        self._context = context
        self.importance: Tensor | None = None
        self.anchor: Tensor | None = None

    @property
    def buffer_bytes(self) -> int:
        """Importances and anchor: 0 during the first task, twice the network after it."""
        return sum(kept.numel() * kept.element_size() for kept in (self.importance, self.anchor) if kept is not None)

    @property
    def stiffness(self) -> float:
        """c in the penalty c Σ F* (θ - anchor)^2."""
        strength = self._settings.e_lambda
        return 0.5 * strength * self._settings.gamma if self._settings.penalty == "schwarz" else strength

    def penalty(self) -> Tensor:
        """What the springs of each repeat add to its loss now, (repeat,)."""
        if self.importance is None or self.anchor is None:
            return torch.zeros(len(self._context.seeds))
        way = self._context.weights.values - self.anchor
        return self.stiffness * (self.importance * way.square()).sum(1)

    @torch.no_grad()
    def regularise(self, gradients: Tensor) -> None:
        """g += 2 c F* (θ - anchor): the penalty's gradient in closed form, without a graph."""
        if self.importance is not None and self.anchor is not None:
            way = self._context.weights.values - self.anchor
            gradients.addcmul_(way, self.importance, value=2.0 * self.stiffness)

    def end_task(self, batches: Batches) -> int:
        """Measure what mattered in the task, and fix the springs where the parameters now stand."""
        assert self._context.of_repeat is not None
        weights, passed = self._context.weights, 0
        found = torch.zeros_like(weights.values)
        for repeat, views in enumerate(_rows(weights.views_of(found), len(found))):
            sizes: list[int] = []
            network = self._context.of_repeat(repeat)
            fisher = diagonal_fisher(
                network, _counted(batches, repeat, sizes), self._settings.fisher, self._settings.fisher_samples
            )
            for view, own in zip(views, fisher, strict=True):
                view.copy_(own)
            limit = self._settings.fisher_samples
            seen = sum(sizes) if limit is None else min(sum(sizes), limit)
            passed += seen * passes_per_example(self._settings.fisher, network.n_classes)
        self.importance = found if self.importance is None else self.importance.mul_(self._settings.gamma).add_(found)
        self.anchor = weights.values.clone()
        return passed

    def state(self) -> dict[str, Any]:
        """Importances and anchor, copied."""
        kept = {"importance": self.importance, "anchor": self.anchor}
        return {name: value.clone() for name, value in kept.items() if value is not None}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
        for name in ("importance", "anchor"):
            there = state.get(name)
            value = None if there is None else torch.zeros_like(self._context.weights.values).copy_(there)
            setattr(self, name, value)


def _rows(views: Mapping[str, Tensor], repeats: int) -> Iterator[list[Tensor]]:
    """The views of one repeat after the other."""
    for repeat in range(repeats):
        yield [view[repeat] for view in views.values()]


def _counted(batches: Batches, repeat: int, sizes: list[int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels of a repeat; the size of each batch that is read is added to `sizes`."""
    for batch in batches():
        sizes.append(batch.targets.shape[1])
        yield batch.inputs[repeat], batch.targets[repeat]


build = EwcOn
