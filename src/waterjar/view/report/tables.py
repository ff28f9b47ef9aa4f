"""Data as CSV, and as a table that stands in for a chart."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from waterjar.view.report.blocks import Chart

MOST_ROWS = 400
"""Rows of the table that stands in for a chart; the CSV has them all."""


def csv_text(frame: pd.DataFrame) -> str:
    """Tidy data as CSV: every digit of every number, nothing where a value is missing."""
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def alternative(chart: Chart) -> tuple[list[str], list[tuple[str, ...]], int]:
    """A chart's numbers as a table for who does not see it: (columns, rows, rows left out)."""
    frame = chart.frame.loc[:, [column for column in chart.frame if chart.frame[column].notna().any()]]
    shown = frame.head(MOST_ROWS)
    rows = [tuple(_cell(value) for value in line) for line in shown.itertuples(index=False, name=None)]
    return [str(column).replace("_", " ") for column in frame], rows, len(frame) - len(shown)


def _cell(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else "–" if value is None else str(value)
