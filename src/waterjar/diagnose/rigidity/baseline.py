"""Which cell is a learner's baseline: the network that only ever saw the last task, under the same conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.identity import SEED_KEYS, UNHASHED
from waterjar.run.study import METHOD_KEYS, Study, flat

_OWN = (*METHOD_KEYS, "scenario", *SEED_KEYS, *UNHASHED)
"""Keys in which a learner and its baseline differ by nature, or that do not change numbers."""

_NEARLY = ("learner_settings.", "recording.", "augmentation.t1.", "training.epochs_t1")
"""Settings that the baseline may have otherwise: its learner's own, what is kept, and the first task, which it
never sees. Among several baselines those that agree here too are preferred."""


def find_baselines(study: Study, baseline: str | None) -> tuple[dict[str, str | None], dict[str, str]]:
    """cell -> its baseline's cell or None; and cell -> a note where there is something to say about it.

    `baseline` is a scenario, whose cell with the same settings is looked for, or the name or id of one cell, which
    then is the baseline of all.
    """
    names, configs = study.cell_names, {cell: entries[0].config for cell, entries in study.cells.items()}
    if baseline is None:
        return dict.fromkeys(configs), dict.fromkeys(configs, "no baseline was asked for")
    of_scenario = [cell for cell, config in configs.items() if config.get("scenario") == baseline]
    if of_scenario:
        pairs = {cell: _matching(cell, of_scenario, configs, names, baseline) for cell in configs}
        return {cell: found for cell, (found, _) in pairs.items()}, {cell: n for cell, (_, n) in pairs.items() if n}
    named = [cell for cell in configs if baseline in (cell, names[cell])]
    if not named and baseline != DEFAULT:
        scenarios = sorted({str(config["scenario"]) for config in configs.values() if config.get("scenario")})
        raise unknown_name(f"{study.path}: baseline", baseline, [*scenarios, *names.values()])
    if not named:
        return dict.fromkeys(configs), dict.fromkeys(configs, f"the study has no cell with the scenario '{baseline}'")
    chosen = named[0]
    notes = {}
    for cell, config in configs.items():
        different = [key for key in _differences(config, configs[chosen]) if not key.startswith(_NEARLY)]
        if different and cell != chosen:
            notes[cell] = f"the baseline '{names[chosen]}' was named; it differs in {_listed(different)}"
    return dict.fromkeys(configs, chosen), notes


DEFAULT = "scratch_t2"


def _matching(
    cell: str, candidates: list[str], configs: Mapping[str, dict[str, Any]], names: Mapping[str, str], scenario: str
) -> tuple[str | None, str]:
    if cell in candidates:
        return cell, ""
    differences = {other: _differences(configs[cell], configs[other]) for other in candidates}
    hard = {other: [key for key in keys if not key.startswith(_NEARLY)] for other, keys in differences.items()}
    able = [other for other in candidates if not hard[other]]
    if not able:
        nearest = min(candidates, key=lambda other: len(hard[other]))
        return None, f"no '{scenario}' has the same settings: '{names[nearest]}' differs in {_listed(hard[nearest])}"
    fewest = min(len(differences[other]) for other in able)
    best = [other for other in able if len(differences[other]) == fewest]
    if len(best) > 1:
        listing = ", ".join(f"'{names[other]}'" for other in best)
        raise WaterjarError(
            f"'{names[cell]}' has {len(best)} possible baselines: {listing}. Name one with baseline=, or select() runs"
        )
    return best[0], ""


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Dotted keys that both have and in which they differ. What only one has belongs to its method."""
    a, b = flat(_without_own(one)), flat(_without_own(other))
    return [key for key in a if key in b and a[key] != b[key]]


def _without_own(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _OWN}


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
