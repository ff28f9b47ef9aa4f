"""Square: a random search that asks for logits alone, no slope (Andriushchenko et al. 2020, algorithms 1 and 2).

It starts from vertical stripes of +-eps. Each query sets one square window, at a random place, to +eps or -eps, channel
by channel, and keeps it if the margin of the label falls. A window covers the share p of the image: 0.8 at first,
halved after 10, 50, 200, 500, 1000, 2000, 4000, 6000 and 8000 of 10,000 queries, in proportion for other numbers. A
network that withstands slopes and falls to Square hides its slopes.
"""

from __future__ import annotations

import bisect
import math

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.attacks._ball import Ball
from waterjar.probe.attacks._candidates import Candidates
from waterjar.probe.attacks._losses import margin
from waterjar.probe.attacks._victim import Victim, is_right
from waterjar.probe.draws import Draws

WHITE_BOX = False
_HALVED_AT = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)
_BLOCK = 64


def share_at(query: int, queries: int, start: float = 0.8) -> float:
    """The share of an image that a window covers.

    >>> [share_at(query, 10_000) for query in (1, 11, 51)]
    [0.8, 0.4, 0.2]
    """
    return float(start / 2 ** bisect.bisect_left(_HALVED_AT, 10_000 * query / queries))


def attack(
    victim: Victim,
    images: Tensor,
    labels: Tensor,
    *,
    eps: float,
    draws: Draws,
    queries: int = 5000,
    start: float = 0.8,
) -> Tensor:
    """(sample, ...) -> (sample, ...). The last two dimensions are rows and columns; of (sample, unit) there is one row.

    Parameters
    ----------
    queries : images that are tried, for every image that is right still.
    start : the share of an image that the first windows cover.
    """
    if queries < 1 or not 0.0 < start <= 1.0:
        raise WaterjarError(f"queries={queries}, start={start}: expected 1 or more, and a share above 0, at most 1")
    found = Candidates(victim, images, labels, margin)
    left = found.left()
    if not len(left):
        return found.images
    rows, columns = (1, images.shape[-1]) if images.ndim == 2 else (images.shape[-2], images.shape[-1])
    channels = images[0].numel() // (rows * columns)
    centre = images[left].reshape(len(left), channels, rows, columns)
    ball = Ball(centre, eps)
    corners = torch.stack([ball.low, ball.high], 1)  # (sample, down or up, channel, row, column)
    stripes = torch.from_numpy(draws.of(left.cpu().numpy()).uniform((channels, 1, columns))).to(images) < 0.5
    at = tried = torch.where(stripes, corners[:, 0], corners[:, 1])
    best, wanted = torch.full_like(found.loss[left], -torch.inf), labels[left]
    numbers = torch.empty(len(left), 0)
    for query in range(queries):
        if query and (query - 1) % _BLOCK == 0:  # of every image as many, whatever becomes of the others
            numbers = torch.from_numpy(draws.of(left.cpu().numpy()).uniform((_BLOCK, 2 + channels))).to(images)
        if query:
            tried = _tried(at, corners, numbers[:, (query - 1) % _BLOCK], share_at(query, queries, start))
        shown = tried.reshape(-1, *images.shape[1:])
        with torch.no_grad():
            logits = victim.logits(shown)
        losses, right = margin(logits, wanted), is_right(logits, wanted)
        better = losses > best
        at, best = torch.where(better[:, None, None, None], tried, at), torch.where(better, losses, best)
        new = better | ~right
        found.offer(left[new], shown[new], losses[new], right[new])
        if not bool(right.all()):
            left, at, best, wanted, corners = left[right], at[right], best[right], wanted[right], corners[right]
            numbers = numbers[right]
            if not len(left):
                break
    return found.images


def _tried(at: Tensor, corners: Tensor, numbers: Tensor, share: float) -> Tensor:
    """(sample, channel, row, column): a window of each image set to a corner; `numbers` say where, and which."""
    rows, columns = at.shape[-2:]
    side = max(1, round(math.sqrt(share * rows * columns))) if rows > 1 else max(1, round(share * columns))
    mask = _span(rows, side, numbers[:, 0])[:, None, :, None] & _span(columns, side, numbers[:, 1])[:, None, None, :]
    down = numbers[:, 2:, None, None] < 0.5
    return torch.where(mask, torch.where(down, corners[:, 0], corners[:, 1]), at)


def _span(length: int, side: int, place: Tensor) -> Tensor:
    """(sample, length): a stretch of `side` that begins at a share `place` of where it may."""
    inside = min(side, length)
    first = (place * (length - inside + 1)).floor().clamp_max(length - inside)[:, None]  # 1 - tiny may be rounded to 1
    along = torch.arange(length, device=place.device)[None]
    return (along >= first) & (along < first + inside)
