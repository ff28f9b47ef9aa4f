"""What was set: the declaration, what differs between learners, and what they share."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import yaml

from waterjar.run.identity import SEED_KEYS
from waterjar.run.study import flat
from waterjar.view.report.blocks import Block, Code, Table
from waterjar.view.report.story import Story

TITLE = "Settings"
ORDER = 100


def appears(story: Story) -> bool:
    """Where there is a run, or a declaration."""
    return bool(story.study.entries) or bool(story.declaration)


def blocks(story: Story) -> list[Block]:
    """Differences first: they are what the comparison is about."""
    made: list[Block] = []
    configs = {
        story.names[cell]: {k: v for k, v in flat(entries[0].config).items() if k not in SEED_KEYS}
        for cell, entries in story.study.cells.items()
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
    if story.diagnosis is not None and story.diagnosis.results:
        lines = [
            {"family": family, "setting": key, "value": json.dumps(value, ensure_ascii=False)}
            for family in story.diagnosis.results
            for key, value in story.settings(family).items()
        ]
        if lines:
            frame = pd.DataFrame(lines)
            made.append(
                Table(
                    "settings_of_diagnostics",
                    "Settings of the diagnostics",
                    ("family", "setting", "value"),
                    tuple(frame.itertuples(index=False, name=None)),
                    frame,
                )
            )
    if story.declaration:
        text = yaml.safe_dump(dict(story.declaration), sort_keys=False, allow_unicode=True)
        made.append(Code("The declaration of the study (study.yaml)", text))
    return made


def _shown(config: dict[str, Any], key: str) -> str:
    if key not in config:
        return "–"
    value = config[key]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
