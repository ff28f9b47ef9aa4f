"""Attacks: how little has to be changed of an image for a classifier to be wrong.

    attack(model, images, labels, "apgd_ce", eps="8/255", normalise=(mean, std))      what became of every image
    worst([one, another])                                                              the worst of several, per image
    attack_flags(model, images, labels, {"apgd_ce": one, ...})                         is the answer to be trusted?

Every attack is a file here with a function `attack(victim, images, labels, *, eps, draws, **settings) -> images` of one
batch, in pixels of [0, 1], and `WHITE_BOX`, whether it asks for slopes; its keyword arguments are its settings. A new
one is one new file, or a function that is passed in the place of a name.
"""

from __future__ import annotations

from waterjar.probe.attacks._ball import NAMED, Ball, radius
from waterjar.probe.attacks._driver import SHELF, Attacked, attack, shown_eps, worst
from waterjar.probe.attacks._flags import attack_flags
from waterjar.probe.attacks._losses import cross_entropy, dlr, margin
from waterjar.probe.attacks._victim import Model, Victim, is_right

__all__ = [
    "NAMED",
    "SHELF",
    "Attacked",
    "Ball",
    "Model",
    "Victim",
    "attack",
    "attack_flags",
    "cross_entropy",
    "dlr",
    "is_right",
    "margin",
    "radius",
    "shown_eps",
    "worst",
]
