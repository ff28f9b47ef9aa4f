"""Tables of what was measured: metrics down, learners across, every number with its interval and n."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from waterjar.diagnose.registry import families
from waterjar.stats.intervals import mean_interval
from waterjar.view.report.blocks import Block, Table
from waterjar.view.numbers import estimate, long_label
from waterjar.view.report.story import Story


def summary_frame(story: Story, family: str, only: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per metric and cell: mean over seeds, 95 % t interval, n, and why values are missing."""
    if story.diagnosis is None or family not in story.diagnosis.results:
        return pd.DataFrame()
    rows = story.table
    rows = rows[rows["family"] == family]
    if only is not None:
        rows = rows[rows["metric"].isin(only)]
    made = []
    for (metric, cell), part in rows.groupby(["metric", "cell"], sort=False):
        found = mean_interval(part["value"].tolist())
        gone = Counter(part.loc[part["value"].isna(), "reason"])
        made.append(
            {
                "family": family,
                "metric": metric,
                "cell": story.names[str(cell)],
                "mean": found.estimate,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "missing": ", ".join(f"{count} of {len(part)} {why}" for why, count in gone.most_common()),
            }
        )
    return pd.DataFrame(made)


def metric_table(
    story: Story, family: str, title: str, only: Sequence[str] | None = None, caption: str = ""
) -> list[Block]:
    """The metrics of a family in a table; metrics that no learner has a value of are left out (and listed at the end
    of the report, with the reason)."""
    frame = summary_frame(story, family, only)
    if frame.empty or story.diagnosis is None:
        return []
    known = [name for name, part in frame.groupby("metric", sort=False) if part["n"].any()]
    order = [name for name in (only or families()[family].metrics) if name in known]
    cells = list(dict.fromkeys(frame["cell"]))
    texts = {(line.metric, line.cell): _cell(line, story) for line in frame.itertuples()}
    rows = tuple(
        (long_label(story.diagnosis.declared(name)), *(texts.get((name, cell), "–") for cell in cells))
        for name in order
    )
    if not rows:
        return []
    words = caption or "Mean over seeds with its 95 % t interval and the number of seeds. ↑ higher is better, ↓ lower."
    return [Table(f"{family}_table", title, ("metric", *cells), rows, frame, words, tuple(range(1, len(cells) + 1)))]


def _cell(line: object, story: Story) -> str:
    mean, low, high, n = (getattr(line, key) for key in ("mean", "low", "high", "n"))
    units = story.diagnosis.declared(getattr(line, "metric")).units if story.diagnosis else "1"  # noqa: B009
    if math.isnan(mean):
        return str(getattr(line, "missing", "")) or "–"
    return estimate(mean, low, high, n, "byte" if units == "byte" else "1")
