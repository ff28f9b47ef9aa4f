"""Stochastic gradient descent, which all learners here have in common: network, optimiser, state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab.learners._protocol import Precision, State, Wants
from waterjar.lab.networks import Network


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


class Descent:
    """Owns the network and its optimiser. A learner adds `observe`, and what it keeps of earlier tasks."""

    def __init__(
        self,
        name: str,
        network: Network,
        settings: DescentSettings,
        *,
        device: torch.device,
        precision: Precision,
        wants: Wants = "sequence",
    ) -> None:
        self.name = name
        self.wants = wants
        self.network = network.to(device)
        self.device = device
        self.tasks_begun = 0
        self.task = -1
        self.settings = settings
        self._precision = precision
        self._parameters: list[Tensor] = list(network.parameters())
        # foreach: one call for all tensors. The default on a CPU is a Python loop over them.
        self._optimiser = torch.optim.SGD(
            self._parameters,
            lr=settings.lr,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            nesterov=settings.nesterov,
            foreach=True,
        )

    @property
    def learning_rate(self) -> float:
        """The present one; assign to it for a schedule."""
        return float(self._optimiser.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if not value > 0.0:
            raise WaterjarError(f"a learning rate of {value}: it must be above 0")
        self._optimiser.param_groups[0]["lr"] = float(value)

    @property
    def buffer_bytes(self) -> int:
        """Nothing is kept."""
        return 0

    def begin_task(self, task: int) -> None:
        """Count the task, and forget the momentum of the last (unless the settings keep it)."""
        self.task = task
        self.tasks_begun += 1
        if self.settings.fresh_optimiser:
            self._optimiser.state.clear()

    def end_task(self, batches: Iterable[tuple[Tensor, Tensor]]) -> int:
        """Nothing to do; the batches are not read."""
        return 0

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits (batch, class) of a training pass, float32 in any precision."""
        if self.tasks_begun == 0:
            raise WaterjarError(f"learner '{self.name}' saw a batch before `begin_task`")
        if not self.network.training:  # an evaluation came in between
            self.network.train()
        if self.network.channels_last:  # once here; torch would do it in the forward and in the backward pass
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        with self._autocast():
            logits: Tensor = self.network(inputs)
        return logits if self._precision == "float32" else logits.float()

    def backward(self, loss: Tensor) -> None:
        """The gradient of a loss, alone, in the parameters' `grad`."""
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]

    def gradients(self) -> list[Tensor]:
        """One a parameter. A parameter without a gradient is an error: it would never learn, in silence."""
        found = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        if len(found) < len(self._parameters):
            idle = [name for name, parameter in self.network.named_parameters() if parameter.grad is None]
            raise WaterjarError(f"learner '{self.name}': the loss does not reach {', '.join(idle)}")
        return found

    def step(self) -> Tensor:
        """Clip where asked, update; gives the norm of the gradient before clipping, a scalar."""
        gradients = self.gradients()
        norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if self.settings.clip_norm is not None:
            torch._foreach_mul_(gradients, (self.settings.clip_norm / norm).clamp(max=1.0))
        self._optimiser.step()
        return norm

    def state(self) -> State:
        """Network, optimiser and counters, copied; and who wrote them."""
        return {
            "learner": self.name,
            "settings": self.settings.model_dump(mode="json"),
            "task": self.task,
            "tasks_begun": self.tasks_begun,
            "learning_rate": self.learning_rate,
            "network": {key: value.detach().clone() for key, value in self.network.state_dict().items()},
            "velocity": [self._velocity(parameter) for parameter in self._parameters],
        }

    def load_state(self, state: State) -> None:
        """Refuse the state of another learner or of other settings: it would load, and be wrong."""
        ours = {"learner": self.name, "settings": self.settings.model_dump(mode="json")}
        for key, mine in ours.items():
            if state.get(key) != mine:
                raise WaterjarError(f"this state has the {key} {state.get(key)}, but it is to be loaded into {mine}")
        try:
            self.network.load_state_dict(state["network"])
        except RuntimeError as error:
            raise WaterjarError(f"learner '{self.name}': the state is of another network: {error}") from error
        self._optimiser.state.clear()
        for parameter, velocity in zip(self._parameters, state["velocity"], strict=True):
            if velocity is not None:
                copy = torch.empty_like(parameter).copy_(velocity)
                self._optimiser.state[parameter]["momentum_buffer"] = copy
        self.learning_rate = state["learning_rate"]
        self.task, self.tasks_begun = state["task"], state["tasks_begun"]

    def _velocity(self, parameter: Tensor) -> Tensor | None:
        velocity = self._optimiser.state.get(parameter, {}).get("momentum_buffer")
        return None if velocity is None else velocity.detach().clone()

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """How many of (batch, class) have their largest logit at their label (batch,), a scalar."""
    return (logits.detach().argmax(1) == labels).sum()
