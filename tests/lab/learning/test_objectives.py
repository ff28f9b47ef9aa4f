"""Gradients by hand against autograd; the policy gradient against that of the expected reward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from waterjar.lab.learning import objectives
from waterjar.lab.learning.objectives.rl import drawn_actions

pytestmark = pytest.mark.torch


def some(shape: tuple[int, int, int], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, labels, uniform numbers."""
    rng = np.random.default_rng(seed)
    return (
        torch.from_numpy(2 * rng.normal(size=shape)),
        torch.from_numpy(rng.integers(0, shape[2], shape[:2])),
        torch.from_numpy(rng.random(shape[:2])),
    )


@given(st.integers(1, 3), st.integers(1, 6), st.integers(2, 5), st.integers(0, 1000))
def test_supervised_against_autograd(repeats: int, batch: int, classes: int, seed: int) -> None:
    logits, labels, uniform = some((repeats, batch, classes), seed)
    outcome = objectives.make("sl", {}).judge(logits, labels, uniform, {})
    leaf = logits.clone().requires_grad_()
    losses = [functional.cross_entropy(own, target) for own, target in zip(leaf, labels, strict=True)]
    (expected,) = torch.autograd.grad(torch.stack(losses).sum(), leaf)
    torch.testing.assert_close(outcome.by_logits, expected)
    assert outcome.reward is None


@given(
    st.sampled_from(["none", "batch", "running"]),
    st.floats(0, 2),
    st.integers(1, 6),
    st.integers(2, 5),
    st.integers(0, 1000),
)
def test_reinforce_against_autograd(baseline: str, entropy: float, batch: int, classes: int, seed: int) -> None:
    logits, labels, uniform = some((2, batch, classes), seed)
    state = (
        {"mean_reward": torch.tensor([0.3, 0.0]), "beginning": torch.tensor([0.4, 1.0])}
        if baseline == "running"
        else {}
    )
    learner = objectives.make("rl", {"baseline": baseline, "entropy": entropy, "decay": 0.5})
    outcome = learner.judge(logits, labels, uniform, state)
    leaf = logits.clone().requires_grad_()
    total = leaf.new_zeros(())
    for r in range(2):
        policy = torch.distributions.Categorical(logits=leaf[r])
        ends = policy.probs.detach().cumsum(1)
        actions = (uniform[r][:, None] >= ends[:, :-1]).sum(1)
        rewards = (actions == labels[r]).double()
        others = torch.stack(
            [torch.cat([rewards[:k], rewards[k + 1 :]]).mean() if batch > 1 else rewards[k] * 0 for k in range(batch)]
        )
        b = {"none": torch.zeros(batch), "batch": others, "running": torch.full((batch,), [0.3 / 0.6, 0.0][r])}[
            baseline
        ]
        total = total - ((rewards - b) * policy.log_prob(actions)).mean() - entropy * policy.entropy().mean()
        assert outcome.reward is not None
        assert torch.equal(outcome.reward[r], rewards)
        if baseline == "running":
            assert float(outcome.state["mean_reward"][r]) == pytest.approx(
                0.5 * [0.3, 0.0][r] + 0.5 * float(rewards.mean())
            )
            assert float(outcome.state["beginning"][r]) == pytest.approx([0.2, 0.5][r])
    (expected,) = torch.autograd.grad(total, leaf)
    torch.testing.assert_close(outcome.by_logits, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("settings", [{"baseline": "none"}, {"baseline": "batch"}, {"baseline": "running"}])
def test_the_estimate_is_the_gradient_of_the_expected_reward(settings: dict[str, object]) -> None:
    """A linear policy of two inputs and three classes, four states: ∇ mean_s π(label|s), from 10^5 samples."""
    rng = np.random.default_rng(3)
    states, labels = rng.normal(size=(4, 2)), np.array([0, 2, 1, 2])
    weights = rng.normal(size=(3, 2))
    policy = np.exp(states @ weights.T)
    policy /= policy.sum(1, keepdims=True)
    hit = policy[np.arange(4), labels]
    by_logits = hit[:, None] * (np.eye(3)[labels] - policy)  # of each state's own expected reward
    expected = -(by_logits[:, :, None] * states[:, None, :]).mean(0)  # descended: minus the gradient

    samples = 100_000
    batches = samples // 8  # each repeat is a batch of its own: every state twice
    logits = torch.from_numpy(np.tile(states @ weights.T, (2, 1))).expand(batches, 8, 3)
    targets = torch.from_numpy(np.tile(labels, 2)).expand(batches, 8)
    start = {name: torch.full((batches,), value) for name, value in {"mean_reward": 0.2, "beginning": 0.5}.items()}
    uniform = torch.from_numpy(rng.random((batches, 8)))
    outcome = objectives.make("rl", settings).judge(logits, targets, uniform, start)
    estimates = np.einsum("nbk,bi->nki", outcome.by_logits.numpy(), np.tile(states, (2, 1)))
    error = estimates.std(0, ddof=1) / np.sqrt(batches)
    assert (np.abs(estimates.mean(0) - expected) < 3 * error).all()
    assert (error < 0.2 * np.abs(expected).max()).all()  # a test that could not fail would pass


def test_a_baseline_lowers_the_variance() -> None:
    logits, labels, _ = some((1, 16, 2), 0)
    uniform = torch.from_numpy(np.random.default_rng(0).random((4000, 16)))
    spread = {}
    for baseline in ("none", "batch"):
        outcome = objectives.make("rl", {"baseline": baseline}).judge(
            logits.expand(4000, 16, 2), labels.expand(4000, 16), uniform, {}
        )
        spread[baseline] = float(outcome.by_logits.var(0).sum())
    assert spread["batch"] < spread["none"]


def test_the_first_running_baseline_is_zero() -> None:
    logits, labels, uniform = some((1, 8, 2), 1)
    running = objectives.make("rl", {"baseline": "running"})
    start = {name: torch.tensor([value]) for name, value in running.start().items()}
    plain = objectives.make("rl", {"baseline": "none"}).judge(logits, labels, uniform, {})
    first = running.judge(logits, labels, uniform, start)
    torch.testing.assert_close(first.by_logits, plain.by_logits, check_dtype=False)
    second = running.judge(logits, labels, uniform, first.state)
    assert first.reward is not None
    missing = second.by_logits - plain.by_logits  # b (1[a] - p) / n, b being the mean reward of the first batch
    assert float(missing.abs().sum()) > 0 or float(first.reward.sum()) == 0


def test_actions_come_as_often_as_the_policy_says() -> None:
    policy = torch.tensor([0.2, 0.5, 0.3])
    uniform = torch.from_numpy(np.random.default_rng(0).random(20_000))
    counts = np.bincount(drawn_actions(policy.expand(20_000, 3), uniform).numpy(), minlength=3)
    expected = 20_000 * policy.double().numpy()
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # chi-squared, 2 degrees of freedom, p = 0.001
