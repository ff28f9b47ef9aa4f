"""PGD, projected gradient descent: many small FGSM steps, each put back into the ball (Madry et al. 2018, eq. 4).

x_{t+1} = P(x_t + a sign d loss(x_t, y) / dx), a = 2.5 eps / steps, from a point drawn evenly from the ball.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.attacks._ball import Ball
from waterjar.probe.attacks._candidates import Candidates
from waterjar.probe.attacks._losses import cross_entropy
from waterjar.probe.attacks._victim import Victim, is_right
from waterjar.probe.draws import Draws

WHITE_BOX = True


def attack(
    victim: Victim,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: Draws,
    steps: int = 40,
    step_size: float | None = None,
    restarts: int = 1,
    random_start: bool = True,
    take: Literal["worst", "last"] = "worst",
) -> Tensor:
    """(sample, ...) -> (sample, ...).

    Parameters
    ----------
    step_size : in pixels; 2.5 eps / steps where it is left out.
    restarts : how often it starts anew, for images that are right still.
    random_start : from a point drawn from the ball, or else from the image itself.
    take : `worst`, the first misclassified point of any walk, else that of highest loss; or the `last` point of one
        walk, whatever it is, as in the paper.
    """
    if steps < 1 or restarts < 1 or take not in ("worst", "last") or (take == "last" and restarts > 1):
        raise WaterjarError(
            f"steps={steps}, restarts={restarts}, take={take!r}: expected 1 or more of both, and take='worst', or "
            "'last' of one walk"
        )
    length = 2.5 * eps / steps if step_size is None else step_size
    if take == "last":
        whole = Ball(images, eps)
        at = whole.anywhere(draws) if random_start else images
        for _ in range(steps):
            at = whole.into(at + length * victim.slope(at, labels, cross_entropy)[1].sign())
        return at
    found = Candidates(victim, images, labels, cross_entropy)
    for _ in range(restarts):
        left = found.left()
        if not len(left):
            break
        ball = Ball(images[left], eps)
        at = ball.anywhere(draws.of(left.cpu().numpy())) if random_start else ball.centre
        for step in range(steps + 1):
            losses, slope, logits = victim.slope(at, labels[left], cross_entropy)
            right = is_right(logits, labels[left])
            found.offer(left, at, losses, right)
            left, at, slope, ball = left[right], at[right], slope[right], ball.of(right)
            if step == steps or not len(left):
                break
            at = ball.into(at + length * slope.sign())
    return found.images
