"""What was found in other forms: a labelled Dataset, and the keys of the seed document."""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.robustness.conditions import CLEAN, attack_label, condition_of
from waterjar.diagnose.robustness.found import Robustness
from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.shares import Bounded

_ENDS = ("", "_low", "_high")


def to_dataset(found: Robustness) -> xr.Dataset:
    """Every number with its name and labels, and `correct` (model, condition, sample).

    >>> right = np.array([[[1, 1], [1, 0]]], bool)
    >>> float(to_dataset(Robustness(("mine",), ("clean", "fgsm/0.03"), right)).accuracy.sel(condition="fgsm/0.03")[0])
    0.5
    """
    own, pairs = ("model", "condition"), ("other_model", "condition")
    tables: dict[str, tuple[tuple[str, str], Bounded]] = {
        "accuracy": (own, found.accuracy),
        "retained": (own, found.retained),
        "effective_robustness": (own, found.effective),
        "difference": (pairs, found.difference),
        "retained_difference": (pairs, found.retained_difference),
        "average_accuracy": (("model", "average"), found.average_accuracy),
        "average_effective_robustness": (("model", "average"), found.average_effective),
        "average_difference": (("other_model", "average"), found.average_difference),
        "average_retained_difference": (("other_model", "average"), found.average_retained_difference),
    }
    made = {
        name + end: (dims, part)
        for name, (dims, parts) in tables.items()
        for end, part in zip(_ENDS, parts, strict=True)
    }
    return xr.Dataset(
        {
            **made,
            **{f"flag_{name}": (("model",), values) for name, values in found.flags.items()},
            "correct": (("model", "condition", "sample"), found.correct),
            "n": found.n,
            "n_retained": int(found.kept.sum()),
        },
        {
            "model": list(found.models),
            "other_model": np.array(found.others, object),
            "condition": list(found.conditions),
            "average": np.array(list(found.averages), object),
        },
        {"confidence": found.confidence, "notes": "\n".join(found.notes)},
    )


def shift_result(found: Robustness, model: str = "", ladder: str = "seed", severity: int = 3) -> dict[str, float]:
    """The keys of the seed document, 4.1: clean, <shift> ..., avg_shifted, robustness = avg_shifted / clean.

    `model` is the first one by default. Where nothing was right when clean, robustness is NaN.
    """
    accuracy = _of(found, model)
    result = {CLEAN: accuracy[CLEAN]}
    for label in found.conditions:
        one = condition_of(label)
        if one.kind == "shift" and (one.ladder, one.severity) == (ladder, severity):
            result[one.name] = accuracy[label]
    if len(result) == 1:
        asked = [name for name in found.averages if not name.endswith("/all")]
        there = f"asked for were {', '.join(asked)}" if asked else "no shift was asked for"
        raise WaterjarError(f"these numbers are of ladder '{ladder}' at severity {severity}: {there}")
    result["avg_shifted"] = float(np.mean([value for key, value in result.items() if key != CLEAN]))
    result["robustness"] = _ratio(result["avg_shifted"], result[CLEAN])
    return result


def attack_result(found: Robustness, model: str = "", attack: str = "fgsm", eps: str = "0.03") -> dict[str, float]:
    """The keys of the seed document, 4.2: clean_acc, adv_acc, robustness = adv_acc / clean_acc.

    `model` is the first one by default. Where nothing was right when clean, robustness is NaN.
    """
    accuracy = _of(found, model)
    label = attack_label(attack, eps)
    if label not in accuracy:
        asked = [one for one in accuracy if condition_of(one).kind == "attack"]
        there = f"asked for were {', '.join(asked)}" if asked else "no attack was asked for"
        raise WaterjarError(f"these numbers are of {label}: {there}")
    clean, after = accuracy[CLEAN], accuracy[label]
    return {"clean_acc": clean, "adv_acc": after, "robustness": _ratio(after, clean)}


def _of(found: Robustness, model: str) -> dict[str, float]:
    if model and model not in found.models:
        raise unknown_name("model", model, found.models)
    row = found.accuracy[0][found.models.index(model) if model else 0]
    return dict(zip(found.conditions, map(float, row), strict=True))


def _ratio(over: float, under: float) -> float:
    return over / under if under else float("nan")
