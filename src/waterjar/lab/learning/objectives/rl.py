r"""Reinforcement learning on the same images: guess a class, be told whether it was right. REINFORCE.

The policy is softmax(logits). An action a ~ π(.|s) is drawn for every image, its reward r is 1 if it is the label, else
0, and what is descended is (Williams, Machine Learning 8, 1992, theorem 1; one-step episodes)

    L(θ) = -mean_s (r - b) log π(a|s)  -  entropy · mean_s H(π(.|s)),        E[∇L] = -∇ E[r]  (without entropy)

for any baseline b that does not hang on the action. With p = π(.|s), the gradient by the logits of n samples is

    (r - b) (p - 1[a]) / n  +  entropy · p (log p + H(p)) / n.

There are three baselines:

| baseline | b |
|---|---|
| none | 0 |
| batch | mean reward of the OTHER samples of the batch: with one's own it would be (n - 1) / n of the gradient |
| running | exponential mean of earlier batches' mean rewards, corrected for its start: m / (1 - decay^n); 0 at first |

The label is never used but to pay the reward: this learner knows whether it was right, not what would have been. The
accuracies that are recorded are greedy: the most probable class.

An action is drawn by its distribution function from ONE uniform number, which is given: no generator, so that a repeat
draws the same whatever runs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from waterjar.lab.learning.objectives import Outcome

Baseline = Literal["none", "batch", "running"]


class Settings(BaseModel):
    """The baseline, and a reward for being undecided."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    baseline: Baseline = "batch"
    decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.99
    """Of the running mean."""
    entropy: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the entropy bonus, in rewards per nat."""


def drawn_actions(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(...,): the class whose stretch of the distribution function (..., class) holds the number (...,).

    >>> drawn_actions(torch.tensor([[0.25, 0.75]] * 3), torch.tensor([0.0, 0.24, 0.25])).tolist()
    [0, 0, 1]
    """
    ends = probabilities.cumsum(-1)[..., :-1]  # the last is 1 but for rounding: what is beyond the others is its
    return (uniform[..., None] >= ends).sum(-1)


class Reinforce:
    """The policy gradient."""

    draws = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def start(self) -> dict[str, float]:
        """The running mean, which begins at 0, and what of it is still its beginning."""
        return {"mean_reward": 0.0, "beginning": 1.0} if self.settings.baseline == "running" else {}

    def judge(self, logits: Tensor, labels: Tensor, uniform: Tensor, state: Mapping[str, Tensor]) -> Outcome:
        """Draw, pay, and weigh the log-probability of what was drawn."""
        logs = torch.log_softmax(logits, 2)
        policy = logs.exp()
        actions = drawn_actions(policy, uniform)
        rewards = (actions == labels).to(logits.dtype)
        advantage, after = self._advantage(rewards, state)
        taken = torch.zeros_like(logs).scatter(2, actions[..., None], 1.0)
        by_logits = advantage[..., None] * (policy - taken)
        if self.settings.entropy:
            entropy = -(policy * logs).sum(2, keepdim=True)
            by_logits = by_logits + self.settings.entropy * policy * (logs + entropy)
        return Outcome(by_logits / logits.shape[1], after, rewards)

    def _advantage(self, rewards: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """(repeat, batch): r - b; and the state after the batch."""
        match self.settings.baseline:
            case "none":
                return rewards, {}
            case "batch":
                others = max(rewards.shape[1] - 1, 1)
                return rewards - (rewards.sum(1, keepdim=True) - rewards) / others, {}
            case "running":
                mean, beginning, decay = state["mean_reward"], state["beginning"], self.settings.decay
                begun = beginning < 1.0
                baseline = torch.where(begun, mean / torch.where(begun, 1.0 - beginning, 1.0), 0.0)
                after = {
                    "mean_reward": decay * mean + (1.0 - decay) * rewards.mean(1),
                    "beginning": decay * beginning,
                }
                return rewards - baseline[:, None], after


build = Reinforce
