"""What became of single examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from waterjar.diagnose.over_seeds import CONFIDENCE
from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.figures.forgotten_examples import METRICS, sorted_examples
from waterjar.view.numbers import panel_title
from waterjar.view.report.blocks import Block, Chart, Table, Text
from waterjar.view.report.charts.curves import Curve, curves_panel
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Single examples"
ORDER = 45
_MOST = 5
"""Examples of a learner that are named."""


def blocks(model: Model) -> list[Block]:
    """Examples sorted by how often they were forgotten, which these are, and the metrics; nothing without any."""
    if "examples" not in model.diagnosis.results:
        return []
    made: list[Block] = []
    frame = model.figure_data("forgotten_examples")
    if len(frame):
        about = figures.describe("forgotten_examples")
        made += [
            Text(_lead(frame)),
            Chart(
                name="forgotten_examples",
                title=about.title,
                panels=tuple(_panel(frame[frame["metric"] == metric], metric, model) for metric in METRICS),
                frame=frame,
                caption="Examples of each learner, sorted: by how often they were forgotten, the most forgotten first, "
                "and by the epoch at which they were learned. A line ends where those begin that never were.",
                alt=_lead(frame),
                keys=tuple(model.keys.values()),
                figure="forgotten_examples",
            ),
        ]
    return [*made, *_named(model), *metric_table(model, "examples", "Examples over training"), *_intervals(model)]


def _lead(frame: pd.DataFrame) -> str:
    """Who forgets what share of its examples, in one sentence."""
    said = []
    for cell, part in frame[frame["metric"] == METRICS[0]].groupby("cell", sort=False):
        about = part.iloc[0]
        forgotten = int(part.loc[part["value"] > 0, "examples"].sum())
        said.append(f"{cell or 'all runs'} {forgotten} of {about['total']} ({about['never']} never learned)")
    return f"Examples that were learned and forgotten again, by one seed or more: {', '.join(said)}."


def _panel(part: pd.DataFrame, metric: str, model: Model) -> dict[str, Any]:
    curves = []
    for cell, rows in part.groupby("cell", sort=False):
        x = [float(end) for both in zip(rows["first"] - 1, rows["last"], strict=True) for end in both]
        y = np.repeat(rows["value"].to_numpy(float), 2).tolist()
        nothing = [np.nan] * len(x)
        curves.append(Curve(str(cell), x, y, nothing, nothing, int(rows["n"].max())))
    return curves_panel(curves, model.keys, title=panel_title(find_metric(metric)), x="examples, sorted")


def _named(model: Model) -> list[Block]:
    """The examples of each learner that were forgotten most often."""
    parts = []
    for cell, one in by_cell(model.diagnosis.results["examples"]):
        if bool(one["same_examples"]):
            rows = sorted_examples(one, METRICS[0])
            parts.append(rows[rows["value"] > 0].head(_MOST).assign(cell=cell))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if not len(frame):
        return []
    rows = tuple(
        (str(line.cell), str(line.example), f"{line.value:.2f}", f"{line.learned_by} of {line.n}")
        for line in frame.itertuples()
    )
    caption = "Set and position of the example, and its forgetting events, mean over the seeds that learned it."
    columns = ("learner", "example", "forgetting events", "learned by seeds")
    return [Table("most_forgotten", "Examples that were forgotten most often", columns, rows, frame, caption, (2, 3))]


def _intervals(model: Model) -> list[Block]:
    """Accuracy, and the gain over the baseline, each bounded over seeds and samples."""
    result = model.diagnosis.results["examples"]
    rows, numbers = [], []
    for cell, one in by_cell(result):
        texts = []
        for name in ("example_accuracy", "mcnemar_gain"):
            mean, low, high, share = (float(one[f"{name}_{end}"]) for end in ("mean", "low", "high", "seed_share"))
            numbers.append((cell, name, mean, low, high, share, str(one[f"{name}_interval"].values)))
            texts += [_text(mean, low, high), "–" if np.isnan(share) else f"{100 * share:.0f} %"]
        if any(text != "–" for text in texts):
            rows.append((cell, *texts, str(one["example_baseline"].values) or "–"))
    frame = pd.DataFrame(numbers, columns=["cell", "metric", "mean", "low", "high", "seed_share", "interval"])
    if not rows:
        return []
    level = 100 * float(model.diagnosis.settings("examples").get("confidence", CONFIDENCE))
    caption = (
        f"Means over seeds at the last evaluation with {level:g} % intervals for other seeds and other samples "
        "(two-way random effects; t over seeds where each has samples of its own). Seeds' part: the share of the "
        "variance that more seeds would lower; the rest takes more samples. The gain is over the baseline, on examples "
        "of tasks that both have trained; an interval clear of 0 is no luck of the seeds, nor of the samples."
    )
    columns = ("learner", "accuracy", "seeds' part", "gain", "seeds' part", "baseline")
    return [
        Table("examples_crossed", "Accuracy over seeds and samples", columns, tuple(rows), frame, caption, (1, 2, 3, 4))
    ]


def _text(mean: float, low: float, high: float) -> str:
    if np.isnan(mean):
        return "–"
    text = f"{mean:.3f}" if np.isnan(low) else f"{mean:.3f} [{low:.3f}, {high:.3f}]"
    return text.replace("-", "−")
