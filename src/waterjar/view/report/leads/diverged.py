"""Losses that were recorded as NaN or as infinite: whose, and since when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import NOT_A_NUMBER
from waterjar.diagnose.training_order import visit_names_of
from waterjar.view.numbers import listed
from waterjar.view.report.leads._claims import FEW
from waterjar.view.report.model import Model

TITLE = "Losses that are not finite"
ORDER = 21
_LOSSES = {"train": "training loss", "performance": "loss"}


def sentences(model: Model) -> list[str]:
    """A sentence for every learner, loss and place where it began; nothing where all losses are finite."""
    shown = model.study.cell_names
    said = []
    for cell, name in model.names.items():
        for group, what in _LOSSES.items():
            steps = model.recorded(group).get(shown[cell])
            if steps is not None and "loss" in steps:
                said += [f"{what} of {name} {text}" for text in _of(steps, after_training=group == "train")]
    more = len(said) - FEW
    told = [f"The {text}." for text in said[:FEW]]
    return [*told, f"{more} more {'loss' if more == 1 else 'losses'} alike."] if more > 0 else told


def _of(steps: xr.Dataset, *, after_training: bool) -> Iterator[str]:
    """Seeds that went the same way together. A training loss before any training (epoch 0) is none."""
    loss, codes = steps["loss"], reasons_of(steps, "loss")
    others = [dim for dim in loss.dims if dim not in ("repeat", "step")]
    logged = ((codes == 0) | (codes == NOT_A_NUMBER)).any(others).transpose("repeat", "step").values
    broken = ((codes == NOT_A_NUMBER) | np.isinf(loss)).any(others).transpose("repeat", "step").values
    if after_training:
        logged, broken = (found & (steps["epoch"].values > 0) for found in (logged, broken))
    names, together = visit_names_of(steps), dict[str, list[str]]()
    for seed, own, all_of_it in zip(steps["seed"].values, broken, logged, strict=True):
        if own.any():
            first = int(own.argmax())
            place = f"epoch {float(steps['epoch'].values[first]):g} of {names[first]}"
            rest = all_of_it[first:]
            lasting = own[first:][rest].all()
            since = f"since {place}" if lasting else f"in {own.sum()} of its {all_of_it.sum()} steps, first at {place}"
            together.setdefault(since, []).append(str(seed))
    for since, seeds in together.items():
        yield f"is not a finite number {since} ({'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)})"
