"""The rigidity index of every learner as a chart: the picture of the first screen."""

from __future__ import annotations

import math

import pandas as pd

from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.report.blocks import Block, Chart
from waterjar.view.report.charts.estimates import Spot, estimates_panel, seeds_of
from waterjar.view.numbers import estimate, label, one_line
from waterjar.view.report.story import Story


def eri_summary_chart(story: Story) -> list[Block]:
    """AD, PD and SFR_rel with intervals, a panel each; nothing where no learner is compared."""
    frame = story.figure_data("eri_summary")
    if frame.empty:
        return []
    about = figures.describe("eri_summary")
    panels = []
    for metric, part in frame.groupby("metric", sort=False):
        spots = [_spot(str(cell), rows) for cell, rows in part.groupby("cell", sort=False)]
        panels.append(estimates_panel(spots, story.keys, title=label(find_metric(str(metric)))))
    return [
        Chart(
            name="eri_summary",
            title=about.title,
            panels=tuple(panels),
            frame=frame,
            caption="Each learner against the baseline, seed by seed: a small dot is a seed, the marker the mean with "
            "its 95 % t interval. Right of 0 is later (AD), worse (PD), more reliant on the shortcut (SFR_rel). "
            "Hollow: some seeds never reached the threshold (censored); AD then is that within the budget, which "
            "counts them.",
            alt=_alt(frame),
            figure="eri_summary",
        )
    ]


def _spot(cell: str, rows: pd.DataFrame) -> Spot:
    first = rows.iloc[0]
    never = int(rows["censored"].sum())
    seeds = seeds_of(rows)
    note = f"{never} of {len(rows)} seeds censored" if never and first["metric"] == "ad" else ""
    if math.isnan(first["mean"]) and not note:
        note = "no value"
    return Spot(cell, first["mean"], first["low"], first["high"], int(first["n"]), seeds, note=note, open=bool(never))


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for metric, part in frame.groupby("metric", sort=False):
        once = part.drop_duplicates("cell")
        told = [
            f"{line.cell} {one_line(estimate(line.mean, line.low, line.high, int(line.n)))}"
            for line in once.itertuples()
        ]
        parts.append(f"{label(find_metric(str(metric)))}: {'; '.join(told)}")
    return "Means with intervals beside a line at 0. " + ". ".join(parts) + "."
