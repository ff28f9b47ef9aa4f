"""A learner of the trunk around one network: one repeat, whose batches are (inputs, labels)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor
from torch.nn import functional

from waterjar.errors import WaterjarError
from waterjar.lab.learners._protocol import Observation, Precision, State, Wants
from waterjar.lab.learning import learner, options
from waterjar.lab.learning.options import Batch, Option
from waterjar.lab.networks import Network

Options = Sequence[tuple[str, Mapping[str, Any]]]


class DescentSettings(BaseModel):
    """The update rule, torch.optim.SGD's:  g += weight_decay θ;  v = momentum v + g;  θ -= lr v."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    lr: Annotated[float, Field(gt=0.0)] = 0.01
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    """On all parameters, biases and normalisations too."""
    nesterov: bool = False
    clip_norm: Annotated[float, Field(gt=0.0)] | None = None
    """Scale the gradient down to this norm where it is longer."""
    fresh_optimiser: bool = True
    """Forget the momentum at the start of each task: a velocity out of the last task is no property of this one."""

    @model_validator(mode="after")
    def _nesterov_has_momentum(self) -> DescentSettings:
        if self.nesterov and self.momentum == 0.0:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class SingleLearner:
    """Stochastic gradient descent with options; `own` are those that make it the learner that its name says."""

    def __init__(
        self,
        name: str,
        network: Network,
        settings: DescentSettings,
        *,
        seed: int,
        device: torch.device,
        precision: Precision,
        own: Options = (),
        more: Options = (),
        wants: Wants = "sequence",
    ) -> None:
        self.name = name
        self.wants = wants
        self.settings = settings
        self._tasks_begun = 0
        self._batch = 0
        self._options = [*own, *((one, options.parse(one, given).model_dump(mode="json")) for one, given in more)]
        rule = learner.Rule(
            optimiser_settings=settings.model_dump(include={"momentum", "weight_decay", "nesterov"}),
            rates=(settings.lr, settings.lr),
            fresh_optimiser=settings.fresh_optimiser,
            clip_norm=settings.clip_norm,
            precision=precision,
            norm_every=1,
            options=self._options,
        )
        self._learner = learner.Learner(rule, [network], seeds=[seed], device=device)

    @property
    def network(self) -> Network:
        """With the weights that are being trained."""
        return self._learner.network

    @property
    def options(self) -> list[Option]:
        """What it does beside descending, its own options first."""
        return self._learner.options

    @property
    def learning_rate(self) -> float:
        """The present one; assign to it for a schedule."""
        return self._learner.rates[0]

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if not value > 0.0:
            raise WaterjarError(f"a learning rate of {value}: it must be above 0")
        self._learner.rates = (float(value), float(value))

    @property
    def buffer_bytes(self) -> int:
        """What its options keep."""
        return self._learner.buffer_bytes

    def begin_task(self, task: int) -> None:
        """Tell the options; momenta are forgotten unless the settings keep them. Tasks are counted as they come."""
        self._learner.begin_task(self._tasks_begun)
        self._tasks_begun, self._batch = self._tasks_begun + 1, 0

    def observe(self, inputs: Tensor, labels: Tensor, epoch: int = 0) -> Observation:
        """One update on a batch, in an epoch of the task."""
        if self._tasks_begun == 0:
            raise WaterjarError(f"learner '{self.name}' saw a batch before `begin_task`")
        told = self._learner.observe(_batch(inputs, labels), self._tasks_begun - 1, epoch, self._batch)
        self._batch += 1
        logits = told.logits[0]
        assert told.norm is not None  # of every batch
        loss = functional.cross_entropy(logits, labels)
        return Observation(loss, (logits.argmax(1) == labels).sum(), told.replayed, told.norm[0])

    def end_task(self, batches: Iterable[tuple[Tensor, Tensor]]) -> int:
        """Let the options measure what they need of the task."""
        return self._learner.end_task(lambda: (_batch(*one) for one in batches))

    def state(self) -> State:
        """All of it, copied; and who wrote it."""
        return {
            **self._about(),
            "tasks_begun": self._tasks_begun,
            "batch": self._batch,
            **self._learner.state(),
        }

    def load_state(self, state: State) -> None:
        """Refuse the state of another learner or of other settings: it would load, and be wrong."""
        for key, mine in self._about().items():
            if state.get(key) != mine:
                raise WaterjarError(f"this state has the {key} {state.get(key)}, but it is to be loaded into {mine}")
        self._learner.load_state(state)
        self._tasks_begun, self._batch = state["tasks_begun"], state["batch"]

    def _about(self) -> dict[str, Any]:
        chosen = [[name, dict(settings)] for name, settings in self._options]
        return {"name": self.name, "settings": self.settings.model_dump(mode="json"), "chosen": chosen}


def _batch(inputs: Tensor, labels: Tensor) -> Batch:
    return Batch(inputs[None], labels[None], labels[None].cpu().numpy())
