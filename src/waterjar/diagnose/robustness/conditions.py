"""What a model was asked under: its label in /probes, taken apart.

    clean    seed/gaussian_noise/3    cifar_c/contrast/2    own/fog/1    fgsm/0.03    pgd/8:255    worst/0.03

A shift has three parts: ladder, name and severity; an attack has two: name and eps, in which a fraction is
written with a colon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from waterjar.errors import WaterjarError

CLEAN = "clean"
SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Condition:
    """A label, taken apart."""

    label: str
    kind: Literal["clean", "shift", "attack"]
    name: str
    """Of the shift or the attack."""
    ladder: str = ""
    severity: int = 0
    eps: str = ""


def shift_label(ladder: str, name: str, severity: int) -> str:
    """The label of a shift.

    >>> shift_label("seed", "blur", 3)
    'seed/blur/3'
    """
    return f"{ladder}/{name}/{severity}"


def attack_label(name: str, eps: str) -> str:
    """The label of an attack.

    >>> attack_label("pgd", "8/255")
    'pgd/8:255'
    """
    return f"{name}/{eps.replace('/', ':')}"


def condition_of(label: str) -> Condition:
    """A label, taken apart; one that is none of ours is an error.

    >>> condition_of("cifar_c/contrast/2").severity, condition_of("pgd/8:255").eps
    (2, '8/255')
    """
    parts = label.split("/")
    if label == CLEAN:
        return Condition(label, "clean", CLEAN)
    if len(parts) == 3 and all(parts) and parts[2].isdecimal():
        return Condition(label, "shift", parts[1], ladder=parts[0], severity=int(parts[2]))
    if len(parts) == 2 and all(parts):
        return Condition(label, "attack", parts[0], eps=parts[1].replace(":", "/"))
    raise WaterjarError(f"condition {label!r}: expected clean, <ladder>/<shift>/<severity> or <attack>/<eps>")


def average_labels(conditions: Iterable[str]) -> dict[str, list[str]]:
    """`<ladder>/<severity>` and `<ladder>/all` -> the labels of shifts that this average is over.

    >>> average_labels(["clean", "seed/blur/3", "seed/contrast/3", "fgsm/0.03"])
    {'seed/3': ['seed/blur/3', 'seed/contrast/3'], 'seed/all': ['seed/blur/3', 'seed/contrast/3']}
    """
    found: dict[str, list[str]] = {}
    for one in (condition_of(label) for label in conditions):
        if one.kind == "shift":
            for end in (str(one.severity), "all"):
                found.setdefault(f"{one.ladder}/{end}", []).append(one.label)
    return dict(sorted(found.items(), key=lambda item: (item[0].split("/")[0], item[0].endswith("all"), item[0])))


def attack_labels(conditions: Sequence[str], eps: str) -> dict[str, str]:
    """Attack -> its label, of those at one eps."""
    all_of_them = (condition_of(label) for label in conditions)
    return {one.name: one.label for one in all_of_them if one.kind == "attack" and one.eps == eps}
