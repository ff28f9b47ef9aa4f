"""Models that tell nothing beside others: their answers are no better than guesses, or far from what they know."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from waterjar.errors import WaterjarError
from waterjar.view.figures._collective import at_places, last_places, measured, own_last, shown_name
from waterjar.view.numbers import number
from waterjar.view.results import Source, by_cell
from waterjar.view.style import labels

WORDS = {"collective": "collective", "best_stream": "best stream", "ensemble": "matched ensemble"}
_STREAM, _CLEAN = "best_stream", "model_clean_accuracy"
_BELOW = "tells far less than a linear probe reads of its features"
Weak = Mapping[str, Mapping[str, str]]
"""cell -> model -> why nothing is to be compared with it; only those of which there is something to say."""


def weak_models(source: Source, robust: xr.Dataset) -> Weak:
    """Of the models in a result of `robustness.measure`, those that are no control in some seed.

    What one constant answer reaches, and what a probe reads of a stream, is told by `collective.measure` of the same
    runs: of a result alone, and of runs without streams, nothing is known.
    """
    if isinstance(source, xr.Dataset):
        return {}
    try:
        known = dict(by_cell(measured(source, "collective", {})))
    except WaterjarError:  # no run has recorded streams
        return {}
    found = {cell: _weak(one, known[cell]) for cell, one in by_cell(robust) if cell in known}
    return {cell: why for cell, why in found.items() if why}


def _weak(one: xr.Dataset, streams: xr.Dataset) -> dict[str, str]:
    if _CLEAN not in one or not one.sizes.get("model"):
        return {}
    places = last_places(streams)
    chances = at_places(streams, "chance", places)[0]
    chance = float(np.nanmax(chances)) if np.isfinite(chances).any() else np.nan
    found = {str(name): _at_chance(one.sel(model=name), chance) for name in one["model"].values}
    if _STREAM in found and not found[_STREAM] and (at_places(streams, "best_below_probe", places)[0] > 0).any():
        found[_STREAM] = _BELOW
    return {name: why for name, why in found.items() if why}


def _at_chance(own: xr.Dataset, chance: float) -> str:
    """What is wrong with a model that is not surely above one constant answer in some seed; empty where it is above."""
    clean, low = (at_places(own, f"{_CLEAN}{end}", own_last(own, _CLEAN))[0] for end in ("", "_low"))
    surely = np.where(np.isnan(low), clean, low) if len(low) else clean
    if not (surely <= chance).any():
        return ""
    worst = float(clean[np.nanargmin(surely)])
    return f"is not surely above one constant answer (accuracy {number(worst)}, chance {number(chance)})"


def notes_on(weak: Weak) -> list[str]:
    """A note for each, as below a figure."""
    shown = labels(map(shown_name, weak), most=24)
    return [
        f"{shown[shown_name(cell)]}: the {WORDS.get(name, name)} {why}: such a control is none"
        for cell, models in weak.items()
        for name, why in models.items()
    ]
