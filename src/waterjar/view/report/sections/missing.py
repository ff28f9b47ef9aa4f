"""What is not in this report, and why: nothing is left out in silence."""

from __future__ import annotations

import pandas as pd

from waterjar.diagnose.registry import families
from waterjar.view import figures
from waterjar.view.report.blocks import Block, Items, Table, Text
from waterjar.view.numbers import label
from waterjar.view.report.story import Story

TITLE = "What is missing"
ORDER = 130

REASONS = {
    "not_recorded": "the training loop did not log it",
    "not_a_number": "the training loop logged NaN",
    "empty_set": "the evaluation set had no sample",
    "run_ended": "another run of the cell is longer",
    "never_reached": "censored: the threshold was not reached within the run",
    "undefined": "the definition has no value here",
}


def appears(story: Story) -> bool:
    """Where anything is missing."""
    return bool(_passed_over(story)) or bool(story.refused) or not _values(story).empty


def blocks(story: Story) -> list[Block]:
    """Families that were passed over, figures that refused, values that are NaN and the reasons."""
    made: list[Block] = []
    items = [(f"{families()[name].title}", why) for name, why in _passed_over(story).items()]
    items += [(f"Figure “{figures.describe(name).title}”", why) for name, why in story.refused.items()]
    if items:
        made += [Text("Not measured, or not shown, because the study has not what it takes:"), Items(tuple(items))]
    frame = _values(story)
    if len(frame) and story.diagnosis is not None:
        names = {name: label(story.diagnosis.declared(name)) for name in frame["metric"].unique()}
        rows = tuple(
            (
                names[line.metric],
                line.cell,
                f"{line.missing} of {line.seeds}",
                line.reason,
                REASONS.get(line.reason, ""),
            )
            for line in frame.itertuples()
        )
        made.append(
            Table(
                "missing",
                "Values without a number",
                ("metric", "learner", "seeds", "reason", "which means"),
                rows,
                frame,
                "A seed without a value is left out of a mean, and n says so. Nothing is put in its place.",
            )
        )
    return made


def _passed_over(story: Story) -> dict[str, str]:
    return {} if story.diagnosis is None else dict(story.diagnosis.passed_over)


def _values(story: Story) -> pd.DataFrame:
    columns = ["family", "metric", "cell", "reason", "missing", "seeds"]
    if story.diagnosis is None:
        return pd.DataFrame(columns=columns)
    rows = story.table
    lines = []
    for (family, metric, cell), part in rows.groupby(["family", "metric", "cell"], sort=False):
        for reason, gone in part[part["value"].isna()].groupby("reason", sort=False):
            lines.append((family, metric, story.names[str(cell)], reason, len(gone), len(part)))
    return pd.DataFrame(lines, columns=columns)
