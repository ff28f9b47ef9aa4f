"""What every metric in this report is: definition, direction, range, source."""

from __future__ import annotations

import math

import pandas as pd

from waterjar.diagnose.registry import families
from waterjar.view.numbers import long_label, number
from waterjar.view.report.blocks import Block, Table, Text
from waterjar.view.report.model import Model

TITLE = "Definitions"
ORDER = 140


def blocks(model: Model) -> list[Block]:
    """A line per metric that has a value somewhere; nothing where none was measured."""
    if not model.diagnosis.results:
        return []
    rows = model.table
    there = set(rows.loc[rows["value"].notna(), "metric"])
    lines = []
    for name in families():
        for metric in families()[name].metrics.values():
            if metric.name in there:
                declared = model.diagnosis.declared(metric.name)
                low, high = declared.range
                lines.append(
                    {
                        "metric": long_label(declared),
                        "name": declared.name,
                        "meaning": declared.long_name,
                        "definition": declared.formula,
                        "range": "" if math.isinf(low) and math.isinf(high) else f"{number(low)} to {number(high)}",
                        "units": "" if declared.units == "1" else declared.units,
                        "source": declared.citation + (f" ({declared.origin})" if declared.origin else ""),
                        "version": declared.edition,
                    }
                )
    frame = pd.DataFrame(lines)
    if frame.empty:
        return [Text("No metric has a value in this study.")]
    shown = ["metric", "meaning", "definition", "range", "units", "source"]
    cells = tuple(tuple(value or "–" for value in line) for line in frame[shown].itertuples(index=False, name=None))
    words = "↑ higher is better, ↓ lower is better, →0 both sides of zero are findings; without an arrow it depends."
    return [Table("definitions", "Metrics", tuple(shown), cells, frame, words)]
