"""What it cost, beside what it brought."""

from __future__ import annotations

from waterjar.view.report.blocks import Block
from waterjar.view.report.cost_chart import cost_accuracy_chart
from waterjar.view.report.measured import metric_table
from waterjar.view.report.story import Story

TITLE = "Costs"
ORDER = 90


def appears(story: Story) -> bool:
    """Where time or memory was recorded."""
    return story.result("cost") is not None


def blocks(story: Story) -> list[Block]:
    """Cost against accuracy, and the table."""
    return [*cost_accuracy_chart(story), *metric_table(story, "cost", "Cost of a run")]
