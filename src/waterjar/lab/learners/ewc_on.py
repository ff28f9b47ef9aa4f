"""Online elastic weight consolidation: parameters that mattered to earlier tasks are held back by springs.

Schwarz et al., "Progress & Compress" (ICML 2018), "online EWC", after Kirkpatrick et al., "Overcoming catastrophic
forgetting in neural networks" (PNAS 2017). After task k, with its Fisher information F_k (diagonal) and parameters θ*:

    F* <- gamma F* + F_k,    anchor <- θ*

and while learning the next, added to the cross-entropy:

| penalty | |
|---|---|
| schwarz | lambda / 2  Σ gamma F* (θ - anchor)^2, the paper's |
| mammoth | lambda  Σ F* (θ - anchor)^2, of the code that the preset's lambda is for (Avalanche's, too) |

How F_k is estimated is a choice of its own (`fisher`; see `_fisher`). Batch-norm statistics are not parameters, and
are not held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from waterjar.lab.learners._descent import Descent, DescentSettings, correct
from waterjar.lab.learners._fisher import FisherVariant, diagonal_fisher, passes_per_example
from waterjar.lab.learners._protocol import Observation, Precision, Preset, State
from waterjar.lab.networks import Network


class Settings(DescentSettings):
    """The update rule and the springs."""

    e_lambda: Annotated[float, Field(ge=0.0)] = 5.0
    """Strength of the springs."""
    gamma: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """What stays of the importances of earlier tasks when a task ends."""
    penalty: Literal["schwarz", "mammoth"] = "schwarz"
    fisher: FisherVariant = "empirical"
    fisher_samples: Annotated[int, Field(ge=1)] | None = None
    """Examples of the ended task that the Fisher information is estimated from; None for all."""


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


class EwcOn(Descent):
    """SGD with springs."""

    settings: Settings

    def __init__(
        self, network: Network, settings: Settings, *, seed: int, device: torch.device, precision: Precision
    ) -> None:
        super().__init__("ewc_on", network, settings, device=device, precision=precision)
        self._importance: list[Tensor] = []  # none before the end of the first task
        self._anchor: list[Tensor] = []

    @property
    def buffer_bytes(self) -> int:
        """Importances and anchor: 0 during the first task, twice the network after it."""
        return sum(tensor.nbytes for tensor in (*self._importance, *self._anchor))

    @property
    def stiffness(self) -> float:
        """c in the penalty c Σ F* (θ - anchor)^2."""
        if self.settings.penalty == "schwarz":
            return 0.5 * self.settings.e_lambda * self.settings.gamma
        return self.settings.e_lambda

    def penalty(self) -> float:
        """What the springs add to the loss now."""
        with torch.no_grad():
            terms = [
                (importance * (parameter - anchor).square()).sum()
                for importance, parameter, anchor in zip(self._importance, self._parameters, self._anchor, strict=False)
            ]
        return self.stiffness * float(sum(terms))

    def observe(self, inputs: Tensor, labels: Tensor) -> Observation:
        """One step on the batch, against the springs."""
        logits = self.logits(inputs)
        loss = functional.cross_entropy(logits, labels)
        self.backward(loss)
        if self._anchor:
            self._pull()
        return Observation(loss.detach(), correct(logits, labels), 0, self.step())

    def end_task(self, batches: Iterable[tuple[Tensor, Tensor]]) -> int:
        """Measure what mattered in the task, on its batches, and fix the springs where the parameters now stand.

        After the last task too, as in the papers: whether another follows is not the learner's to know, and its state
        is then one to go on from. Gives the examples measured, times the classes if the Fisher information is exact.
        """
        limit = self.settings.fisher_samples
        sizes: list[int] = []
        fresh = diagonal_fisher(self.network, _counted(batches, sizes), self.settings.fisher, limit)
        if self._importance:
            torch._foreach_mul_(self._importance, self.settings.gamma)
            torch._foreach_add_(self._importance, fresh)
        else:
            self._importance = fresh
        self._anchor = [parameter.detach().clone() for parameter in self._parameters]
        measured = sum(sizes) if limit is None else min(sum(sizes), limit)
        return measured * passes_per_example(self.settings.fisher, self.network.n_classes)

    def state(self) -> State:
        """The descent's, importances and anchor."""
        return super().state() | {
            "importance": [tensor.clone() for tensor in self._importance],
            "anchor": [tensor.clone() for tensor in self._anchor],
        }

    def load_state(self, state: State) -> None:
        """Back to a state."""
        super().load_state(state)
        self._importance = self._beside_parameters(state["importance"])
        self._anchor = self._beside_parameters(state["anchor"])

    def _beside_parameters(self, tensors: list[Tensor]) -> list[Tensor]:
        """Copies on the device and in the memory layout of the parameters; an empty list stays empty."""
        pairs = zip(self._parameters, tensors, strict=bool(tensors))
        return [torch.empty_like(parameter, requires_grad=False).copy_(tensor) for parameter, tensor in pairs]

    @torch.no_grad()
    def _pull(self) -> None:
        """grad += 2 c F* (θ - anchor): the penalty's gradient in closed form, without a graph."""
        pull = torch._foreach_sub(self._parameters, self._anchor)
        torch._foreach_addcmul_(self.gradients(), pull, self._importance, value=2.0 * self.stiffness)


def _counted(batches: Iterable[tuple[Tensor, Tensor]], sizes: list[int]) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches; the size of each that is read is added to `sizes`."""
    for inputs, labels in batches:
        sizes.append(len(labels))
        yield inputs, labels


build = EwcOn
