"""What is not in this report, and why: nothing is left out in silence."""

from __future__ import annotations

import pandas as pd

from waterjar.diagnose.registry import find_family
from waterjar.run.schema import MEANINGS
from waterjar.view import figures
from waterjar.view.numbers import label
from waterjar.view.report.blocks import Block, Items, Table, Text
from waterjar.view.report.model import Model

TITLE = "What is missing"
ORDER = 130


def blocks(model: Model) -> list[Block]:
    """Families that were passed over, figures that refused, values that are NaN and the reasons; nothing if none is."""
    made: list[Block] = []
    items = [(find_family(name).title, why) for name, why in model.diagnosis.passed_over.items()]
    items += [(f"Figure “{figures.describe(name).title}”", why) for name, why in model.refused.items()]
    if items:
        made += [Text("Not measured, or not shown, because the study has not what it takes:"), Items(tuple(items))]
    lines = []
    for (family, metric, cell), part in model.table.groupby(["family", "metric", "cell"], sort=False):
        for reason, gone in part[part["value"].isna()].groupby("reason", sort=False):
            lines.append((family, metric, model.names[str(cell)], reason, len(gone), len(part)))
    if lines:
        rows = tuple(
            (
                label(model.diagnosis.declared(metric)),
                cell,
                f"{missing} of {seeds}",
                reason,
                MEANINGS.get(reason, ""),
            )
            for _, metric, cell, reason, missing, seeds in lines
        )
        made.append(
            Table(
                "missing",
                "Values without a number",
                ("metric", "learner", "seeds", "reason", "which means"),
                rows,
                pd.DataFrame(lines, columns=["family", "metric", "cell", "reason", "missing", "seeds"]),
                "A seed without a value is left out of a mean, and n says so. Nothing is put in its place.",
            )
        )
    return made
