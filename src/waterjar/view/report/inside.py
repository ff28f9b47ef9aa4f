"""What goes on inside a collective: routing, fingerprints and anchors, each beside its value before training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.registry import Metric, find_family
from waterjar.run.schema import REASONS
from waterjar.view import figures
from waterjar.view.numbers import estimate, label, listed, number, one_line, size_of
from waterjar.view.report.blocks import Block, Chart, Key, Table
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.charts.theme import QUIET, keys_of, label_names, layout
from waterjar.view.report.leads.collective import level_words, mean_of, named_cells
from waterjar.view.report.model import Model
from waterjar.view.style import COLOURS

FAMILY = "collective"
_FEW = 7
"""Streams with a colour each; more of them are drawn alike."""
_INSIDE = (
    "routing_entropy", "route_information", "load_imbalance", "routing_overlap", "anchor_utilisation", "anchor_entropy",
    "dead_anchors", "fingerprint_diversity", "disagreement",
)  # fmt: skip
"""What untrained networks have a value of, too."""


def stream_keys(streams: list[str]) -> dict[str, Key]:
    """The collective in blue, streams in other colours; many of them in grey."""
    found = {"collective": Key("c", "collective", COLOURS[0], symbol="circle")}
    for i, (name, key) in enumerate(keys_of(["", *streams]).items()):
        if name and len(streams) > _FEW:
            found[name] = Key("s", f"each of {len(streams)} streams", QUIET, "solid", "circle")
        elif name:
            found[name] = Key(f"s{i}", key.label, key.colour, key.dash if i % 4 else "dash", key.symbol)
    return found


def inside(model: Model) -> list[Block]:
    """Routing, fingerprints and anchors, each beside its value before training."""
    known = find_family(FAMILY).metrics
    rows, numbers = [], []
    for metric in (known[name] for name in _INSIDE if name in known):
        texts = []
        for cell, one in named_cells(model, FAMILY):
            end = mean_of(model, metric.name, cell)
            first, why = _initial(one, metric)
            if end is None:
                texts.append("–")
                continue
            text = one_line(estimate(end["mean"], end["low"], end["high"], int(end["n"]), scale=size_of(metric)))
            texts.append(f"{text}\n{'before training ' + number(first) if np.isfinite(first) else why}")
            numbers.append((cell, metric.name, end["mean"], end["low"], end["high"], int(end["n"]), first))
        if any(text != "–" for text in texts):
            rows.append((label(metric), *texts))
    if not rows:
        return []
    columns = ["cell", "metric", "mean", "low", "high", "n", "initial"]
    caption = (
        f"Mean over seeds at the end with its {level_words(model, FAMILY)} interval, and below it the mean before any "
        "training (epoch 0): "
        "random fingerprints are diverse, and untrained affinities even, so that a value says something only "
        "beside that one."
    )
    names = tuple(cell for cell, _ in named_cells(model, FAMILY))
    table = Table("collective_inside", "Routing, fingerprints, anchors: at the end and before training",
                  ("metric", *names), tuple(rows), pd.DataFrame(numbers, columns=columns), caption,
                  tuple(range(1, len(names) + 1)))  # fmt: skip
    return [table, *_routing(model), *_fingerprints(model)]


def _initial(one: Any, metric: Metric) -> tuple[float, str]:
    """The mean before training, or why there is none."""
    name = f"{metric.name}_initial"
    values = one[name].values.astype(float) if name in one else np.full(1, np.nan)
    if np.isfinite(values).any():
        return float(np.nanmean(values)), ""
    codes = reasons_of(one, name).values if name in one else np.ones(1, np.uint8)
    return np.nan, f"before training: {REASONS[int(codes.max())]}"


_MOST_PANELS = 12


def _routing(model: Model) -> list[Block]:
    frame = model.figure_data("routing")
    if frame.empty:
        return []
    about = figures.describe("routing")
    highest = float(np.nanmax(frame["mean"])) if frame["mean"].notna().any() else 1.0
    groups = list(frame.groupby(["cell", "stream"], sort=False))
    panels = []
    for (cell, stream), part in groups[:_MOST_PANELS]:
        square = part.pivot(index="slot", columns="route", values="mean").to_numpy(float)
        names = label_names([f"{cell}: {stream}" if cell else str(stream)])
        columns, rows = ([str(i) for i in range(n)] for n in reversed(square.shape))
        panels.append(
            matrix_panel(square.tolist(), columns, rows, title=next(iter(names.values())), x="route", y="slot",
                         limits=(0.0, highest), bar="mean weight", height=230)
        )  # fmt: skip
    left = len(groups) - len(panels)
    more = (
        f" The first {_MOST_PANELS} of {len(groups)} are shown; the data, and waterjar plot, have all." if left else ""
    )
    caption = (
        "Weight of every route (across) of every slot (down), a panel per stream, mean over the scored samples and "
        "over seeds. The mean over samples hides how far single ones differ: routing entropy tells that."
    )
    alt = f"Mean routing weights of {len(groups)} streams, the largest {number(highest)}."
    return [Chart("routing", about.title, tuple(panels), frame, caption + more, alt, figure="routing")]


def _fingerprints(model: Model) -> list[Block]:
    frame = model.figure_data("fingerprint_map")
    if frame.empty or frame["share_x"].isna().all():
        return []
    about = figures.describe("fingerprint_map")
    keys = stream_keys(list(dict.fromkeys(frame["stream"])))
    panels = [_map(str(cell), part, keys) for cell, part in frame.groupby("cell", sort=False)]
    shares = [f"{cell or 'this run'} {100 * (part['share_x'].iloc[0] + part['share_y'].iloc[0]):.0f} %"
              for cell, part in frame.groupby("cell", sort=False)]  # fmt: skip
    alt = f"A point per stream on two principal components, which hold of the variance: {listed(shares)}."
    legend = tuple(dict.fromkeys(key for name, key in keys.items() if name != "collective"))
    return [Chart("fingerprint_map", about.title, tuple(panels), frame, about.caption, alt, legend,
                  figure="fingerprint_map")]  # fmt: skip


def _map(cell: str, part: pd.DataFrame, keys: dict[str, Key]) -> dict[str, Any]:
    labels = label_names(dict.fromkeys(part["stream"]))
    data: list[dict[str, Any]] = []
    for stream, rows in part.groupby("stream", sort=False):
        ends = rows.sort_values("at", ascending=False)  # start before end
        key = keys[str(stream)]
        data.append({
            "type": "scatter", "mode": "lines+markers", "x": list(ends["x"]), "y": list(ends["y"]),
            "line": {"color": key.colour, "width": 1},
            "marker": {
                "color": key.colour, "size": [6, 11][-len(ends):], "symbol": ["circle-open", key.symbol][-len(ends):],
            },
            "text": list(ends["at"]), "legendgroup": key.group, "name": labels[str(stream)],
            "hovertemplate": f"%{{text}}: %{{x:.3g}}, %{{y:.3g}}<extra>{labels[str(stream)]}</extra>",
        })  # fmt: skip
    first = part.iloc[0]
    shares = [f"component {i} ({100 * first[f'share_{c}']:.0f} %)" for i, c in enumerate("xy", 1)]
    title = label_names([f"{cell or 'this run'}, seed {first['seed']}"])
    return {"data": data, "layout": layout(title=next(iter(title.values())), x=shares[0], y=shares[1], height=320)}
