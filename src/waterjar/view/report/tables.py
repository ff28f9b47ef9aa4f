"""Data as CSV, and as a table that stands in for a chart."""

from __future__ import annotations

import pandas as pd

from waterjar.run.shown import csv_cell
from waterjar.view.report.blocks import Chart

MOST_ROWS = 400
"""Rows of the table that stands in for a chart; the CSV has them all."""


def csv_text(frame: pd.DataFrame) -> str:
    """Tidy data as CSV: every digit of every number, nothing where a value is missing.

    Texts are those of `csv_cell`: names come from files of others.
    """
    safe = frame.rename(columns=csv_cell)
    for name in safe:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            cells = [csv_cell(value) for value in safe[name]]
            safe[name] = pd.Series(cells, index=safe.index, dtype=object)  # whole numbers among texts stay whole
    text: str = safe.to_csv(index=False, lineterminator="\n")
    return text


def alternative(chart: Chart) -> tuple[list[str], list[tuple[str, ...]], int]:
    """A chart's numbers as a table, for readers who cannot see it: (columns, rows, rows left out)."""
    frame = chart.frame.loc[:, [column for column in chart.frame if chart.frame[column].notna().any()]]
    shown = frame.head(MOST_ROWS)
    rows = []
    for line in shown.itertuples(index=False, name=None):
        there = (value if value is not None and value == value else "–" for value in line)  # noqa: PLR0124 - NaN is not
        rows.append(tuple(f"{value:.5g}" if isinstance(value, float) else str(value) for value in there))
    return [str(column).replace("_", " ") for column in frame], rows, len(frame) - len(shown)
