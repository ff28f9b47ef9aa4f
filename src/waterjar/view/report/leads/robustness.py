"""Whether a collective is more robust than its control, at equal clean accuracy, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from waterjar.view.figures._collective import at_places, measured, own_last
from waterjar.view.figures._controls import WORDS, weak_models
from waterjar.view.numbers import counted, listed, number
from waterjar.view.report.leads.collective import distrusted, level_words, mean_of, named_cells
from waterjar.view.report.model import Model

TITLE = "Robustness"
ORDER = 50
FAMILY = "robustness"
_GAINS = {"robustness_gain": "under shifts", "adversarial_gain": "under attack"}


def sentences(model: Model) -> list[str]:
    """Every learner beside its control; nothing where no probe of robustness was recorded."""
    if FAMILY not in model.diagnosis.results:
        return []
    said = []
    weak = weak_models(model.diagnosis, measured(model.diagnosis, FAMILY, {}))
    for cell, one in named_cells(model, FAMILY):
        name = _control(model, one)
        control, none = WORDS.get(name, name), weak.get(cell, {})
        lines = {gain: mean_of(model, gain, cell) for gain in _GAINS}
        known = {gain: line for gain, line in lines.items() if line is not None}
        if known and (own := none.get(_looked_at(model, one))):
            said.append(f"{cell} {own}: whether it is more robust than the {control} cannot be told.")
        elif known and name in none:
            said.append(
                f"Whether {cell} is more robust than the {control} cannot be told: the {control} {none[name]}, and "
                "such a control is none."
            )
        else:
            said += [_sentence(model, one, cell, gain, _GAINS[gain], control, line) for gain, line in known.items()]
    return said


def _looked_at(model: Model, one: Any) -> str:
    """The name of the model that is held against the control, as it was set, or the first; empty for none."""
    usual = str(one["model"].values[0]) if one.sizes.get("model") else ""
    return str(model.diagnosis.settings(FAMILY).get("model") or usual)


def _control(model: Model, one: Any) -> str:
    """The name of the model that gains are over, as it was set, or as it is chosen."""
    others = [str(name) for name in one["other_model"].values] if "other_model" in one.coords else []
    usual = next((name for name in ("ensemble", "best_stream", *others) if name in others), "control")
    return str(model.diagnosis.settings(FAMILY).get("control") or usual)


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
