"""What was set: the declaration, what differs between learners, and what they share."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from waterjar.run.cells import flat
from waterjar.run.identity import SEED_KEYS
from waterjar.run.shown import shown_settings
from waterjar.run.yaml_text import write_yaml
from waterjar.view.numbers import listed
from waterjar.view.report.blocks import Block, Code, Table, Text
from waterjar.view.report.model import Model

TITLE = "Settings"
ORDER = 100


def blocks(model: Model) -> list[Block]:
    """Differences first: they are what the comparison is about."""
    made: list[Block] = []
    configs = {
        model.names[cell]: {k: v for k, v in flat(shown_settings(entries[0].config)).items() if k not in SEED_KEYS}
        for cell, entries in model.study.cells.items()
    }
    keys = list(dict.fromkeys(key for config in configs.values() for key in config))
    differ = [key for key in keys if len({_shown(config, key) for config in configs.values()}) > 1]
    if differ:
        cells = list(configs)
        rows = tuple((key, *(_shown(configs[cell], key) for cell in cells)) for key in differ)
        frame = pd.DataFrame(
            [{"setting": key, "cell": cell, "value": _shown(configs[cell], key)} for key in differ for cell in cells]
        )
        made.append(
            Table(
                "settings_that_differ",
                "Settings in which learners differ",
                ("setting", *cells),
                rows,
                frame,
                "– : the learner has no such setting. Seeds are left out.",
            )
        )
    shared = [key for key in keys if key not in differ]
    if shared:
        one = next(iter(configs.values()))
        frame = pd.DataFrame([{"setting": key, "value": _shown(one, key)} for key in shared])
        rows = tuple((key, _shown(one, key)) for key in shared)
        made.append(Table("settings_shared", "Settings that all runs share", ("setting", "value"), rows, frame))
    return [*made, *_diagnostics(model), *_declaration(model)]


def _diagnostics(model: Model) -> list[Block]:
    """The settings that were used, as the results say it, and how learners were compared."""
    found, analysis = model.diagnosis, model.diagnosis.analysis
    used = [(family, key, value) for family in found.results for key, value in found.settings(family).items()]
    if not used:
        return []
    if analysis.tests is not False and len(model.study.cells) > 1:
        compared = {"baseline": model.baseline, **analysis.test_settings.model_dump()}
        used += [("comparison", key, value) for key, value in compared.items()]
    lines = [(family, key, json.dumps(value, ensure_ascii=False)) for family, key, value in used]
    columns = ("family", "setting", "value")
    title = "Settings that the diagnostics were measured with"
    return [Table("settings_of_diagnostics", title, columns, tuple(lines), pd.DataFrame(lines, columns=columns))]


def _declaration(model: Model) -> list[Block]:
    declared = model.study.declaration
    if not declared:
        return []
    given = [f"{name}.{key}" for name, own in model.given.items() for key in own]
    before = f"Asked for when this report was made, before what the study declares: {listed(given)}."
    text = write_yaml(shown_settings(declared))
    return [*([Text(before)] if given else []), Code("The declaration of the study (study.yaml)", text)]


def _shown(config: dict[str, Any], key: str) -> str:
    if key not in config:
        return "–"
    value = config[key]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
