"""How much of its accuracy a classifier keeps under shifts and attacks, beside its controls, on the same images."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.diagnose.robustness.conditions import CLEAN, attack_label, shift_label
from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.diagnose.robustness.found import Robustness
from waterjar.errors import WaterjarError, unknown_name
from waterjar.probe.attacks import Model, attack, attack_flags, is_right, shown_eps, worst
from waterjar.probe.attacks import radius as checked_radius
from waterjar.probe.attacks._driver import Kernel, kernel_of, room
from waterjar.probe.pixels import Normalise, checked_images, checked_index, checked_labels
from waterjar.probe.shifts import OWN, SEVERITIES, SHELF, Shift, ladders_of, shift
from waterjar.run.combining import are_probabilities

ATTACKS = ("fgsm", "pgd", "apgd_ce", "apgd_dlr", "square", "noise")
Bools = NDArray[np.bool_]
Asked = dict[str, tuple[str | Shift, int, str] | None]
"""Label -> shift, severity and ladder; None for clean images."""


def robustness(
    models: Mapping[str, Model],
    images: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any] | Sequence[int],
    *,
    shifts: Sequence[str | Shift] | None = None,
    ladders: Sequence[str] = ("seed", "cifar_c"),
    severities: Sequence[int] = SEVERITIES,
    attacks: Sequence[str | Kernel] = ATTACKS,
    eps: float | str | Sequence[float | str] = "seed",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    flags: bool = True,
    references: Mapping[str, Model] | None = None,
    normalise: Normalise | Mapping[str, Normalise] = None,
    seed: int = 0,
    index: Sequence[int] | None = None,
    batch_size: int = 256,
    confidence: float = 0.95,
) -> Robustness:
    """Ask every model about the same images, clean, shifted and attacked; answers are kept sample by sample.

    "More robust" is said at equal clean accuracy: `retained` is the share still right of the samples that ALL models
    had right when clean, `retained_difference` what the first model keeps more of them than another, with an interval
    over samples; with three or more `references`, `effective` is what a model keeps beyond what its clean accuracy
    predicts (Taori et al. 2020). Attacks are made for each model by itself. Models are not touched: see `attack`.

    Parameters
    ----------
    models : name -> images to logits, as {"collective": ..., "best_stream": ..., "ensemble": ...}; the first one is
        looked at, the others are its controls.
    images : (sample, channel, row, column), pixels in [0, 1]. labels : (sample,).
    shifts : names of shifts, and functions (images, severity, draws) -> images; all of the ladders by default.
    attacks : names of attacks, and functions; `worst` of all of them comes by itself. Those by default leave out
        apgd_dlr where there are fewer than three classes.
    eps : one or several, see `attack`; flags are those of the first.
    settings : attack -> its settings, as {"apgd_ce": {"steps": 20, "restarts": 1}}.
    flags : whether to ask if the attacks are to be trusted, see `attack_flags`.
    references : other models, or checkpoints, from which effective robustness learns what a clean accuracy predicts.
    normalise : pixels -> what models take, see `attack`; or a mapping name of a model -> its own.
    """
    pixels = checked_images(images)
    wanted = checked_labels(labels, len(pixels))
    places = checked_index(index, len(pixels))
    more = dict(references or {})
    if not models or models.keys() & more.keys():
        raise WaterjarError(f"models {list(models)}, references {list(more)}: expected at least one, each name once")
    all_models = {**models, **more}
    own = _normalisers(normalise, all_models)
    asked = _shifts(shifts, ladders, severities)
    natural = {
        name: _answers(name, model, own[name], pixels, wanted, asked, places, seed, batch_size)
        for name, model in all_models.items()
    }
    radii = [eps] if isinstance(eps, float | int | str) else list(eps)
    conditions, columns = list(asked), [natural[name][0] for name in models]
    chosen, notes = _attacks(attacks, [natural[name][1] for name in models])
    options = {str(key): dict(value) for key, value in (settings or {}).items()}
    names = [_name(how) for how in chosen]
    for name in options:
        if name not in names:
            raise unknown_name("settings: attack", name, names)
    found_flags: dict[str, list[float]] = {name: [] for name in FLAGS}
    for place, radius in enumerate(radii if chosen else []):
        how = {"seed": seed, "index": places, "batch_size": batch_size}
        for row, (name, model) in enumerate(models.items()):
            about: dict[str, Any] = {"eps": radius, "normalise": own[name], **how}
            made = {
                _name(one): attack(model, pixels, wanted, one, **about, **options.get(_name(one), {})) for one in chosen
            }
            made["worst"] = worst(list(made.values()))
            columns[row] = np.concatenate([columns[row], [one.right for one in made.values()]])
            if flags and not place:
                _collect(found_flags, attack_flags(
                    model, pixels, wanted, made, normalise=own[name], seed=seed, batch_size=batch_size
                ))  # fmt: skip
        conditions += [attack_label(name, shown_eps(radius)) for name in (*names, "worst")]
    return Robustness(
        tuple(models),
        tuple(conditions),
        np.stack(columns),
        {name: np.array(values) for name, values in found_flags.items() if values},
        np.stack([natural[name][0] for name in more]) if more else None,
        confidence=confidence,
        seed=seed,
        notes=notes,
    )


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of `robustness` that it would refuse later: before anything else is computed.

    >>> check_settings({"severities": [9]})
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: robust: severity 9: expected one of 1, 2, 3, 4, 5
    """
    own = inspect.signature(robustness).parameters
    usual = {name: one.default for name, one in own.items() if one.kind is one.KEYWORD_ONLY and name != "normalise"}
    for name in settings:
        if name not in usual:
            raise unknown_name("robust: setting", name, usual)
    given = usual | dict(settings)
    for severity in given["severities"]:
        if severity not in SEVERITIES:
            raise WaterjarError(f"robust: severity {severity!r}: expected one of {', '.join(map(str, SEVERITIES))}")
    _shifts(given["shifts"], given["ladders"], given["severities"])
    options = given["settings"] or {}
    for how in given["attacks"]:
        kernel_of(how, dict(options.get(_name(how), {})))
    for name in options:
        if name not in map(_name, given["attacks"]):
            raise unknown_name("settings: attack", name, [_name(one) for one in given["attacks"]])
    for eps in [given["eps"]] if isinstance(given["eps"], float | int | str) else given["eps"]:
        checked_radius(eps)


def _collect(into: dict[str, list[float]], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        into[name].append(value)


def _name(how: str | Kernel | Shift) -> str:
    return how if isinstance(how, str) else getattr(how, "__name__", type(how).__name__)


def _normalisers(normalise: Normalise | Mapping[str, Normalise], models: Mapping[str, Model]) -> dict[str, Normalise]:
    if not isinstance(normalise, Mapping):
        return dict.fromkeys(models, normalise)
    for name in normalise:
        if name not in models:
            raise unknown_name("normalise: model", name, models)
    return {name: normalise.get(name) for name in models}


def _shifts(shifts: Sequence[str | Shift] | None, ladders: Sequence[str], severities: Sequence[int]) -> Asked:
    """What is asked, by label, clean first. A shift stands on those of the ladders that have it."""
    chosen = SHELF.names() if shifts is None else shifts
    known = {ladder for name in SHELF.names() for ladder in ladders_of(name)}
    for ladder in ladders:
        if ladder not in known:
            raise unknown_name("ladder", ladder, sorted(known))
    found: Asked = {CLEAN: None}
    for one in chosen:
        own = [ladder for ladder in ladders if ladder in ladders_of(one)] if isinstance(one, str) else [OWN]
        if not own and shifts is not None:
            raise WaterjarError(
                f"shift '{one}' is on none of the ladders {list(ladders)}: it has {ladders_of(str(one))}"
            )
        for ladder in own:
            found |= {shift_label(ladder, _name(one), severity): (one, severity, ladder) for severity in severities}
    return found


def _attacks(attacks: Sequence[str | Kernel], classes: Sequence[int]) -> tuple[list[str | Kernel], tuple[str, ...]]:
    """The attacks that are made, and what is to be said of those that are not."""
    chosen = list(attacks)
    if tuple(attacks) == ATTACKS and min(classes) < 3:
        return [one for one in chosen if one != "apgd_dlr"], ("apgd_dlr was left out: its loss needs three classes",)
    return chosen, ()


def _answers(
    name: str,
    model: Model,
    normalise: Normalise,
    pixels: Tensor,
    labels: Tensor,
    asked: Asked,
    index: NDArray[np.int64],
    seed: int,
    batch_size: int,
) -> tuple[Bools, int]:
    """(condition, sample): whether the answer is right, of clean and of shifted images; and how many classes it has."""
    rows: dict[str, list[Tensor]] = {label: [] for label in asked}
    classes = 0
    with room(model, normalise, pixels, seed) as victim, torch.no_grad():
        for part in torch.split(torch.arange(len(pixels)), batch_size):
            batch, own = pixels[part], labels[part].to(victim.device)
            for label, how in asked.items():
                seen = batch if how is None else _shifted(batch, how, seed, index[part.numpy()])
                logits = victim.logits(seen.to(victim.device))
                classes = int(logits.shape[1])
                if how is None and bool(logits.isnan().any()):
                    raise WaterjarError(f"logits of '{name}' are NaN: expected numbers, at least of clean images")
                if how is None and are_probabilities(logits.cpu()):
                    raise WaterjarError(
                        f"logits of '{name}': these look like probabilities (0 or more, and every row sums to 1), "
                        "which hide gradients from attacks: expected logits, such as their log"
                    )
                rows[label].append(is_right(logits, own).cpu())
    return np.stack([torch.cat(parts).numpy() for parts in rows.values()]), classes


def _shifted(batch: Tensor, how: tuple[str | Shift, int, str], seed: int, index: NDArray[np.int64]) -> Tensor:
    name, severity, ladder = how
    return shift(batch, name, severity, ladder=ladder, seed=seed, index=index)
