"""Auto-PGD: PGD with momentum that chooses its own step sizes (Croce & Hein 2020, "Reliable evaluation", algorithm 1).

    z_{k+1} = P(x_k + eta_k sign d loss(x_k) / dx)
    x_{k+1} = P(x_k + 0.75 (z_{k+1} - x_k) + 0.25 (x_k - x_{k-1}))        with eta_0 = 2 eps

At checkpoints w_j = ceil(p_j steps), p_0 = 0, p_1 = 0.22, p_{j+1} = p_j + max(p_j - p_{j-1} - 0.03, 0.06), the step
size of an image is halved, and it goes on from its best point, if since the last checkpoint the loss rose in fewer than
75 % of its steps, or if the step size was not halved there and the best loss is the same still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.attacks._ball import Ball
from waterjar.probe.attacks._candidates import Candidates
from waterjar.probe.attacks._losses import Loss
from waterjar.probe.attacks._victim import Victim, is_right
from waterjar.probe.draws import Draws

MOMENTUM, ENOUGH_RISES = 0.75, 0.75


def checkpoints(steps: int) -> list[int]:
    """After how many steps the step sizes are looked at.

    >>> checkpoints(100)
    [22, 41, 57, 70, 80, 87, 93, 99]
    """
    shares, found = [0.0, 0.22], []
    while shares[-1] <= 1.0:
        found.append(math.ceil(round(shares[-1] * steps, 9)))
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return sorted({at for at in found if 0 < at <= steps})


@dataclass
class _State:
    """One walk, (sample, ...) each."""

    places: Tensor
    at: Tensor
    before: Tensor
    slope: Tensor
    loss: Tensor
    best: Tensor
    best_slope: Tensor
    best_loss: Tensor
    step_size: Tensor
    rises: Tensor
    """Steps since the last checkpoint in which the loss rose."""
    best_at_check: Tensor
    halved: Tensor
    """Whether the step size was halved at the last checkpoint."""

    def keep(self, which: Tensor) -> _State:
        """That of some of the images."""
        return _State(**{one.name: getattr(self, one.name)[which] for one in fields(self)})


def climb(
    victim: Victim,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: Draws,
    loss: Loss,
    steps: int,
    restarts: int,
) -> Tensor:
    """(sample, ...) -> (sample, ...): the first misclassified point of any walk, else that of highest loss."""
    if steps < 1 or restarts < 1:
        raise WaterjarError(f"steps={steps}, restarts={restarts}: expected 1 or more")
    found = Candidates(victim, images, labels, loss)
    for _ in range(restarts):
        left = found.left()
        if not len(left):
            break
        _walk(victim, Ball(images, eps), labels, found, left, draws, loss, steps)
    return found.images


def _walk(
    victim: Victim,
    ball: Ball,
    labels: Tensor,
    found: Candidates,
    left: Tensor,
    draws: Draws,
    loss: Loss,
    steps: int,
) -> None:
    """One walk of all images that are left; those that are misclassified on the way leave it."""
    start = ball.of(left).anywhere(draws.of(left.cpu().numpy()))
    losses, slope, logits = victim.slope(start, labels[left], loss)
    right = is_right(logits, labels[left])
    found.offer(left, start, losses, right)
    state = _begin(left, start, slope, losses, 2 * ball.eps).keep(right)
    checks = checkpoints(steps)
    for step in range(steps):
        if not len(state.places):
            return
        own = ball.of(state.places)
        moved = _moved(state, own, MOMENTUM if step else 1.0)
        losses, slope, logits = victim.slope(moved, labels[state.places], loss)
        right = is_right(logits, labels[state.places])
        found.offer(state.places, moved, losses, right)
        _advance(state, moved, slope, losses)
        if step + 1 in checks:
            place = checks.index(step + 1)
            _check(state, step + 1 - (checks[place - 1] if place else 0))
        state = state.keep(right)


def _begin(places: Tensor, start: Tensor, slope: Tensor, losses: Tensor, step_size: float) -> _State:
    none = torch.zeros_like(losses)
    size = torch.full_like(losses, step_size)
    no = torch.zeros_like(losses, dtype=torch.bool)
    return _State(places, start, start, slope, losses, start, slope, losses, size, none, losses, no)


def _moved(state: _State, ball: Ball, momentum: float) -> Tensor:
    size = state.step_size.reshape(-1, *(1 for _ in range(state.at.ndim - 1)))
    aim = ball.into(state.at + size * state.slope.sign())
    return ball.into(state.at + momentum * (aim - state.at) + (1 - momentum) * (state.at - state.before))


def _advance(state: _State, moved: Tensor, slope: Tensor, losses: Tensor) -> None:
    state.rises = state.rises + (losses > state.loss)
    better = losses > state.best_loss
    state.best = _where(better, moved, state.best)
    state.best_slope = _where(better, slope, state.best_slope)
    state.best_loss = torch.where(better, losses, state.best_loss)
    state.before, state.at, state.slope, state.loss = state.at, moved, slope, losses


def _check(state: _State, length: int) -> None:
    too_few = state.rises < ENOUGH_RISES * length
    no_gain = ~state.halved & (state.best_loss <= state.best_at_check)
    halve = too_few | no_gain
    state.step_size = torch.where(halve, state.step_size / 2, state.step_size)
    state.at, state.slope = _where(halve, state.best, state.at), _where(halve, state.best_slope, state.slope)
    state.loss = torch.where(halve, state.best_loss, state.loss)
    state.rises, state.best_at_check, state.halved = torch.zeros_like(state.rises), state.best_loss, halve


def _where(which: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return torch.where(which.reshape(-1, *(1 for _ in range(yes.ndim - 1))), yes, no)
