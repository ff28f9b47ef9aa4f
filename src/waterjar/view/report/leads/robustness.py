"""Whether a collective is more robust than its control, at equal clean accuracy, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from waterjar.view.figures._collective import at_places, last_places, own_last
from waterjar.view.numbers import counted, listed, number
from waterjar.view.report.leads.collective import distrusted, level_words, mean_of, named_cells
from waterjar.view.report.model import Model

TITLE = "Robustness"
ORDER = 50
FAMILY = "robustness"
_COLLECTIVE = "collective"
_GAINS = {"robustness_gain": "under shifts", "adversarial_gain": "under attack"}
MODELS = {"collective": "collective", "best_stream": "best stream", "ensemble": "matched ensemble"}


def sentences(model: Model) -> list[str]:
    """Every learner beside its control; nothing where no probe of robustness was recorded."""
    if FAMILY not in model.diagnosis.results:
        return []
    said = []
    chances = _chances(model)
    for cell, one in named_cells(model, FAMILY):
        control = _control(model, one)
        lines = {gain: mean_of(model, gain, cell) for gain in _GAINS}
        known = {gain: line for gain, line in lines.items() if line is not None}
        at_chance = _at_chance(one, chances.get(cell, np.nan))
        if known and at_chance:
            said.append(f"{cell} {at_chance}: whether it is more robust than the {control} cannot be told.")
            continue
        said += [_sentence(model, one, cell, gain, _GAINS[gain], control, line) for gain, line in known.items()]
    return said


def _chances(model: Model) -> dict[str, float]:
    """Cell -> accuracy of one constant answer, the highest of its seeds; of collectives whose labels were recorded."""
    if _COLLECTIVE not in model.diagnosis.results:
        return {}
    found = {cell: at_places(one, "chance", last_places(one))[0] for cell, one in named_cells(model, _COLLECTIVE)}
    return {cell: float(np.nanmax(values)) for cell, values in found.items() if np.isfinite(values).any()}


def _at_chance(one: Any, chance: float) -> str:
    """What is wrong with a model that is not surely above one constant answer in some seed; empty where it is above."""
    if np.isnan(chance) or "model_clean_accuracy" not in one or not one.sizes.get("model"):
        return ""
    own = one.isel(model=0)
    clean, low = (at_places(own, f"model_clean_accuracy{end}", own_last(own, "model_clean_accuracy"))[0]
                  for end in ("", "_low"))  # fmt: skip
    surely = np.where(np.isnan(low), clean, low) if len(low) else clean
    if not (surely <= chance).any():
        return ""
    worst = float(clean[np.nanargmin(surely)])
    return f"is not surely above one constant answer (accuracy {number(worst)}, chance {number(chance)})"


def _control(model: Model, one: Any) -> str:
    """The model that gains are over, as it was set, or as it is chosen."""
    others = [str(name) for name in one["other_model"].values] if "other_model" in one.coords else []
    usual = next((name for name in ("ensemble", "best_stream", *others) if name in others), "control")
    name = str(model.diagnosis.settings(FAMILY).get("control") or usual)
    return MODELS.get(name, name)


def _sentence(model: Model, one: Any, cell: str, gain: str, where: str, control: str, line: Any) -> str:
    mean, low, high, n = (float(line[key]) for key in ("mean", "low", "high", "n"))
    how = f"{level_words(model, FAMILY)} interval over {counted(int(n), 'seed')}"
    if n < 2:
        low, high = (
            float(np.nanmean(at_places(one, f"{gain}_{end}", own_last(one, gain))[0])) for end in ("low", "high")
        )
        how = "interval over samples, of one network: other seeds may differ"
    verdict = "is not shown to be more robust than"
    signs = distrusted(one) if gain == "adversarial_gain" else []
    doubt = ""
    if low > 0 and signs:
        doubt = f" Attacks on it are not to be trusted ({listed(signs)})."
    elif low > 0:
        verdict = "is more robust than"
    elif high < 0:
        verdict = "is less robust than"
    bounds = "" if np.isnan(low) else f" [{number(low)}, {number(high)}]"
    return (
        f"{cell} {verdict} the {control} {where}: of samples that all models have right when clean, the share that "
        f"stays right differs by {number(mean)}{bounds} ({how}).{doubt}"
    )
