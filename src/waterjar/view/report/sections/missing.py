"""What is not in this report, and why: nothing is left out in silence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from waterjar.diagnose.registry import find_family
from waterjar.run.schema import MEANINGS
from waterjar.view import figures
from waterjar.view.numbers import label
from waterjar.view.report.blocks import Block, Items, Table, Text
from waterjar.view.report.model import Model

TITLE = "What is missing"
ORDER = 130
_LONGEST = 180
"""Characters: a cell of a table in Markdown or LaTeX is cut at 200."""


def blocks(model: Model) -> list[Block]:
    """Families that were passed over, figures that refused, values that are NaN and the reasons; nothing if none is."""
    made: list[Block] = []
    items = [(find_family(name).title, why) for name, why in model.diagnosis.passed_over.items()]
    items += [(f"Figure “{figures.describe(name).title}”", why) for name, why in model.refused.items()]
    items += [("Probe runs", why) for _, why in model.diagnosis.study.left_out]
    if items:
        made += [
            Text("Not measured, or not shown, because what it needs was not recorded, or not once:"),
            Items(tuple(items)),
        ]
    lines = []
    for (family, metric, cell), part in model.table.groupby(["family", "metric", "cell"], sort=False):
        for reason, gone in part[part["value"].isna()].groupby("reason", sort=False):
            lines.append((family, metric, str(cell), reason, len(gone), len(part)))
    if lines:
        made.append(
            Table(
                "missing",
                "Values without a number",
                ("metric", "learner", "seeds", "reason", "which means"),
                tuple(_rows(model, lines)),
                pd.DataFrame(lines, columns=["family", "metric", "cell", "reason", "missing", "seeds"]),
                "A seed without a value is left out of a mean, and n says so. Nothing is put in its place.",
            )
        )
    return made


def _rows(model: Model, lines: list[tuple[Any, ...]]) -> Iterator[tuple[str, ...]]:
    """Metrics of a family that the same learners lack for the same reason in one row, so that none is cut off.

    What more than two lack, and nobody has, is that of all learners.
    """
    cells: dict[tuple[Any, ...], list[str]] = {}
    for family, metric, cell, reason, missing, seeds in lines:
        cells.setdefault((family, metric, reason, f"{missing} of {seeds}"), []).append(cell)
    metrics: dict[tuple[Any, ...], list[str]] = {}
    for (family, metric, reason, count), names in cells.items():
        found = metrics.setdefault((family, reason, count, tuple(names)), [])
        found.append(label(model.diagnosis.declared(metric)))
    for (_, reason, count, names), labels in metrics.items():
        everybody = len(names) > 2 and set(names) == set(model.names.values())
        shown = (f"all {len(names)} learners",) if everybody else names
        for some, who in itertools.product(_fitting(labels), _fitting(shown)):
            yield some, who, count, reason, MEANINGS.get(reason, "")


def _fitting(texts: Sequence[str]) -> list[str]:
    """Texts in a row, as many together as a cell of a table holds."""
    made: list[str] = []
    for text in texts:
        if made and len(made[-1]) + len(text) < _LONGEST:
            made[-1] += f", {text}"
        else:
            made.append(text)
    return made
