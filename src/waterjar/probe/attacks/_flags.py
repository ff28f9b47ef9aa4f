"""Is an attack's answer to be trusted? What AutoAttack and Carlini et al. (2019) ask of an evaluation.

A network can hide its slopes (gradient masking: Athalye et al. 2018): attacks then fail, and the network is no more
robust for it. What each flag means, and from where on it is raised, stands in `waterjar.diagnose.robustness.flags`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.probe.attacks._driver import SHELF, Attacked, attack, room
from waterjar.probe.attacks._losses import cross_entropy
from waterjar.probe.attacks._victim import Model, Victim
from waterjar.probe.pixels import Normalise, checked_images, checked_labels

Bools = NDArray[np.bool_]
_SAME = 1e-4
"""Logits that differ by no more, relative to the largest, differ by rounding."""


def attack_flags(
    model: Model,
    images: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any] | Sequence[int],
    found: Mapping[str, Attacked],
    *,
    normalise: Normalise = None,
    seed: int = 0,
    batch_size: int = 256,
    large_eps: float = 0.5,
    steps: int = 50,
) -> dict[str, float]:
    """Flag -> its number; NaN where the attacks that it compares were not run. See `FLAGS` for what each means.

    Parameters
    ----------
    found : attacks of one eps on these images, by their names.
    large_eps : an eps at which every image can become a plain grey one, so that accuracy has to fall to 0.
    steps : of the attack at `large_eps`, APGD on the cross-entropy with one start.
    """
    pixels = checked_images(images)
    wanted = checked_labels(labels, len(pixels))
    flat, random = _asked(model, pixels, wanted, normalise, seed, batch_size)
    how: dict[str, Any] = {"eps": large_eps, "normalise": normalise, "seed": seed, "batch_size": batch_size}
    far = attack(model, pixels, wanted, "apgd_ce", steps=steps, restarts=1, **how)
    far_noise = attack(model, pixels, wanted, "noise", **how)
    before = far.clean_right
    white = [one for name, one in found.items() if _is_white(name)]
    iterated = [one for one in white if one.how != "fgsm"]
    values = dict.fromkeys(FLAGS, float("nan"))
    values["zero_gradient_share"] = _share(flat, before)
    values["output_randomness"] = float(random.mean())
    values["large_eps_accuracy"] = far.accuracy
    if iterated:
        held = _held(iterated)
        nearer = np.any([one.margin > one.clean_margin for one in iterated], 0)
        values["loss_not_rising"] = _share(held & ~nearer, before)
        if "fgsm" in found:
            values["one_step_beats_iterated"] = _share(held & ~found["fgsm"].right, before)
    if white:
        held = _held(white)
        if "square" in found:
            values["square_beats_white_box"] = _share(held & ~found["square"].right, before)
        if "noise" in found:
            values["noise_as_good_as_white_box"] = _against_noise(held, found["noise"].right, far, far_noise)
    return values


def _is_white(name: str) -> bool:
    return name in SHELF.ours and bool(SHELF.module(name).WHITE_BOX)


def _held(attacks: Sequence[Attacked]) -> Bools:
    """(sample,): right before and after each of some attacks."""
    found: Bools = np.all([one.clean_right & one.right for one in attacks], 0)
    return found


def _share(which: Bools, among: Bools) -> float:
    """Of the images that were right before; NaN where none was."""
    return float((which & among).sum() / among.sum()) if among.any() else float("nan")


def _against_noise(held: Bools, noise: Bools, far: Attacked, far_noise: Attacked) -> float:
    """Accuracy under slopes less that under noise; at the large eps where neither does anything at its own.

    -1, the best, where slopes leave nothing right.
    """
    before = far.clean_right
    if (held & before).sum() == (noise & before).sum() == before.sum():
        held, noise = far.right & before, far_noise.right
    if not held.any():
        return -1.0
    return _share(held, before) - _share(noise, before)


def _asked(
    model: Model, pixels: Tensor, labels: Tensor, normalise: Normalise, seed: int, batch_size: int
) -> tuple[Bools, Bools]:
    """(sample,) each: whether no pixel has any slope, and whether asking twice gives two answers."""
    flat, random = [], []
    with room(model, normalise, pixels, seed) as victim:
        for rows in torch.split(torch.arange(len(pixels)), batch_size):
            batch, own = pixels[rows].to(victim.device), labels[rows].to(victim.device)
            _, slope, _ = victim.slope(batch, own, cross_entropy)
            flat.append((slope.flatten(1) == 0).all(1).cpu().numpy())
            random.append(_differs(victim, batch).cpu().numpy())
    return np.concatenate(flat), np.concatenate(random)


def _differs(victim: Victim, images: Tensor) -> Tensor:
    with torch.no_grad():
        first, second = victim.logits(images), victim.logits(images)  # whatever the model draws goes on between
    size = torch.maximum(first.abs(), second.abs()).amax(1).clamp_min(torch.finfo(first.dtype).tiny)
    return (first - second).abs().amax(1) > _SAME * size
