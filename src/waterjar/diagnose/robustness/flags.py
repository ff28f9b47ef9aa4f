"""Signs that a network hides its slopes, so that attacks fail where it is not robust: gradient masking.

Sources: Athalye, Carlini & Wagner 2018; Carlini et al. 2019, "On evaluating adversarial robustness", sec. 3.2; the
checks of AutoAttack (Croce & Hein 2020). Shares are of images that were right before the attack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """A number of which a large one is a bad sign."""

    limit: float
    """It is raised above this."""
    meaning: str


FLAGS = {
    "zero_gradient_share": Flag(0.01, "share of images at which no pixel changes the cross-entropy at all"),
    "output_randomness": Flag(0.0, "share of images that get other logits when they are asked for again"),
    "square_beats_white_box": Flag(0.02, "share of images that Square fools, and no attack that knows the slopes"),
    "noise_as_good_as_white_box": Flag(
        -0.005, "accuracy under attacks that know the slopes less that under noise of equal eps; -1 where it is 0"
    ),
    "one_step_beats_iterated": Flag(0.02, "share of images that FGSM fools, and no attack of many steps"),
    "loss_not_rising": Flag(0.05, "share of images that no attack of many steps brought any nearer to another class"),
    "large_eps_accuracy": Flag(0.05, "accuracy where eps is large enough for every image to become plain grey"),
}
"""By the names in /probes/attack_flags."""


def raised_flags(values: Mapping[str, float]) -> tuple[str, ...]:
    """The flags that are raised; one that is NaN was not looked at.

    >>> raised_flags({"zero_gradient_share": 0.4, "loss_not_rising": 0.0, "square_beats_white_box": float("nan")})
    ('zero_gradient_share',)
    """
    found = {name: float(values.get(name, math.nan)) for name in FLAGS}
    return tuple(name for name, value in found.items() if value > FLAGS[name].limit)
