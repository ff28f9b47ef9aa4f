"""How far representations move."""

from __future__ import annotations

import pandas as pd

from waterjar.view import figures
from waterjar.view.report.blocks import Block, Chart
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.charts.theme import as_drawn, label_names
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Drift of representations"
ORDER = 70
_CAPTION = (
    "Every snapshot against every other, by linear CKA, mean over repeats: dark is alike (1), pale unlike (0). Dark "
    "squares along the diagonal are stretches in which the representation stays what it is. Red dashed lines part the "
    "tasks. Empty: no value."
)


def blocks(model: Model) -> list[Block]:
    """Snapshots against snapshots, and the summary; nothing where no features were recorded."""
    if "drift" not in model.diagnosis.results:
        return []
    made: list[Block] = []
    frame = model.figure_data("drift_matrix")
    if len(frame):
        about = figures.describe("drift_matrix")
        labels = label_names(frame["cell"].unique())
        panels = [_panel(part, labels[str(cell)]) for cell, part in frame.groupby("cell", sort=False)]
        layers = [name for name in frame["layer"].unique() if name]
        made.append(
            Chart(
                name="drift_matrix",
                title=about.title + (f", layer {layers[0]}" if layers else ""),
                panels=tuple(panels),
                frame=frame,
                caption=as_drawn(_CAPTION, panels),
                alt=_alt(frame),
                figure="drift_matrix",
            )
        )
    return [*made, *metric_table(model, "drift", "Drift at the end of training")]


def _panel(part: pd.DataFrame, title: str) -> dict[str, object]:
    square = part.pivot(index="snapshot", columns="other_snapshot", values="mean")
    counts = part.pivot(index="snapshot", columns="other_snapshot", values="n")
    first = part.drop_duplicates("snapshot")
    epochs = [f"{epoch:g}" for epoch in first["total_epoch"]]
    tasks = first["train_task"].tolist()
    hover = [
        [
            f"epochs {epochs[i]} and {epochs[j]}: {square.iat[i, j]:.3f}, n = {counts.iat[i, j]}"
            for j in range(len(epochs))
        ]
        for i in range(len(epochs))
    ]
    return matrix_panel(
        square.to_numpy().tolist(),
        epochs,
        epochs,
        title=title,
        x="total epoch",
        y="total epoch",
        hover=hover,
        limits=(0.0, 1.0),
        square=True,
        height=320,
        boundary=[i - 0.5 for i in range(1, len(tasks)) if tasks[i] != tasks[i - 1]],
    )


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for cell, part in frame.groupby("cell", sort=False):
        first, last = part["snapshot"].min(), part["snapshot"].max()
        ends = part[(part["snapshot"] == first) & (part["other_snapshot"] == last)]["mean"]
        if len(ends) and pd.notna(ends.iloc[0]):
            parts.append(f"{cell} {ends.iloc[0]:.2f}")
    return "A square per learner: similarity of every snapshot with every other. First against last: " + (
        ", ".join(parts) + "." if parts else "no value."
    )
