"""Two metrics against each other over repeats, with their correlation per algorithm and over all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.over_seeds import interval_words, over_seeds
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.correlation import METHODS, correlate_pair
from waterjar.view.curves import say
from waterjar.view.figures._series import EPOCH, TASK, axis_title, course, family_needs, per_repeat
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in
from waterjar.view.style import axes, counted, figure_of, house_style, labels, marker_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Two metrics against each other"
CAPTION = (
    "A point per repeat, colour and marker tell the algorithm; Pearson's r and Spearman's ρ with intervals are below, "
    "per algorithm and over all points, where differences between algorithms count too. Points of one repeat (over "
    "tasks or snapshots) are not independent: then r is taken within each repeat, and n counts repeats."
)
NEEDS = ("continual",)
OVER = {"repeat": "", "task": TASK, "snapshot": EPOCH}
ALL = "all"
SHARED = ", and a seed that several have is a point of each"
_LETTERS = 82
"""Of a line below the figure."""
_SIGNS = {"pearson": "r", "spearman": "ρ"}


def data(
    source: Source,
    *,
    x: str = "forgetting",
    y: str = "learning_accuracy",
    over: str = "repeat",
    snapshots: str = "mean",
    layer: str | None = None,
    confidence: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Rows of `kind` point: cell, seed, place, x, y, missing; and of `kind` correlation: cell (empty: of all), method,
    r, low, high, n, n_missing, reason.

    over="repeat": a point is a repeat, both metrics as one number (see `metric_boxes` for `snapshots`), and r and its
    interval are those of `stats.correlate_pair`. over="task" or "snapshot": a point is one of a repeat's. They follow
    each other and are no independent draws, so r is taken within every repeat over its own points, and what is told is
    the mean of these r over repeats with its interval, inside [-1, 1]: n counts repeats. `layer` is for snapshots.
    `confidence` is by default that of the declared tests.
    """
    if over not in OVER:
        raise unknown_name("over", over, OVER)
    if x == y:
        raise WaterjarError(f"x and y are both '{x}': expected two different metrics")
    diagnosis = diagnosis_of(source, family_needs([x, y], NEEDS), settings)
    x, y = map(diagnosis.name_of, (x, y))
    level = diagnosis.analysis.confidence if confidence is None else confidence
    points = _repeats(diagnosis, x, y, snapshots) if over == "repeat" else _places(diagnosis, x, y, over, layer)
    groups = (
        [*points.groupby("cell", sort=False), ("", points)]
        if points["cell"].nunique() > 1
        else list(points.groupby("cell", sort=False))
    )
    told = [
        {"kind": "correlation", "cell": cell, "method": method, **_correlation(part, over, method, level)}
        for cell, part in groups
        for method in METHODS[::-1]
    ]
    found = pd.concat([points.assign(kind="point"), pd.DataFrame(told)], ignore_index=True)
    kept = [
        "kind",
        "cell",
        "seed",
        "place",
        "x",
        "y",
        "missing",
        "method",
        "r",
        "low",
        "high",
        "n",
        "n_missing",
        "reason",
    ]
    found = found[kept]
    how = {} if over != "repeat" else _how(diagnosis, x, y, snapshots)
    found.attrs = {
        "titles": tuple(axis_title(diagnosis, name) + (f", {how[name]}" if how.get(name) else "") for name in (x, y)),
        "over": over, "confidence": level,
    }  # fmt: skip
    return found


def _repeats(diagnosis: Diagnosis, x: str, y: str, snapshots: str) -> pd.DataFrame:
    table = per_repeat(diagnosis, [x, y], snapshots=snapshots)
    return _side_by_side(table.assign(place=np.nan), x, y)


def _how(diagnosis: Diagnosis, x: str, y: str, snapshots: str) -> dict[str, str]:
    return dict(per_repeat(diagnosis, [x, y], snapshots=snapshots).groupby("metric")["how"].first())


def _places(diagnosis: Diagnosis, x: str, y: str, over: str, layer: str | None) -> pd.DataFrame:
    courses = []
    for name in (x, y):
        rows = course(diagnosis, name, layer=layer)
        if set(rows["axis"]) - {OVER[over]}:
            other = next(kind for kind, axis in OVER.items() if axis == rows["axis"].iloc[0])
            raise WaterjarError(f"over={over}: {name} has a value per {other}; over=repeat takes one number of each")
        courses.append(rows)
    if over == "snapshot":  # steps and snapshots are numbered apart; moments of a run are told by task and epoch
        courses = [rows.assign(place=_moments(rows)) for rows in courses]
    table = pd.concat(courses, ignore_index=True)
    table["missing"] = table["reason"].replace("present", "")
    return _side_by_side(table, x, y)


def _moments(rows: pd.DataFrame) -> pd.Series:
    """Total epoch and task as one number that rises: the end of a task and the start of the next share an epoch."""
    order = {task: i for i, task in enumerate(dict.fromkeys(rows["train_task"]))}
    return rows["x"] + 1e-6 * rows["train_task"].map(order)


def _side_by_side(table: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """One row per cell, seed and place that has a row of either metric."""
    parts = {}
    for axis, name in (("x", x), ("y", y)):
        rows = table[table["metric"] == name][["cell", "seed", "place", "value", "missing"]]
        parts[axis] = rows.rename(columns={"value": axis, "missing": f"{axis}_missing"})
    both = parts["x"].merge(parts["y"], on=["cell", "seed", "place"], how="outer", sort=False)
    order = {cell: i for i, cell in enumerate(dict.fromkeys(table["cell"]))}
    both = both.sort_values(["cell", "seed", "place"], key=lambda c: c.map(order) if c.name == "cell" else c)
    said = [
        "; ".join(f"{name}: {why}" for name, why in ((x, a), (y, b)) if isinstance(why, str) and why)
        for a, b in zip(both["x_missing"], both["y_missing"], strict=True)
    ]
    return both[["cell", "seed", "place", "x", "y"]].assign(missing=said).reset_index(drop=True)


def _correlation(part: pd.DataFrame, over: str, method: str, confidence: float) -> dict[str, Any]:
    if over == "repeat":
        found = correlate_pair(part["x"], part["y"], method=method, confidence=confidence)
        return {"r": found.r, "low": found.low, "high": found.high, "n": found.n, "n_missing": found.n_missing,
                "reason": found.reason}  # fmt: skip
    each = [correlate_pair(a, b, method=method) for a, b in _within(part)]
    mean = over_seeds([one.r for one in each], confidence=confidence, within=(-1.0, 1.0))
    why = next((one.reason for one in each if np.isnan(one.r)), "" if mean.n > 1 else "one repeat has no interval")
    return {"r": mean.mean, "low": mean.low, "high": mean.high, "n": mean.n, "n_missing": mean.seeds - mean.n,
            "reason": why}  # fmt: skip


def _within(part: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    for _, own in part.groupby(["cell", "seed"], sort=False):
        yield own["x"].to_numpy(float), own["y"].to_numpy(float)


def metric_scatter(
    source: Source,
    *,
    x: str = "forgetting",
    y: str = "learning_accuracy",
    over: str = "repeat",
    snapshots: str = "mean",
    layer: str | None = None,
    confidence: float | None = None,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """Draw one metric against another, a point per repeat (or per task or snapshot of one, see `data`)."""
    with house_style():
        table = data(source, x=x, y=y, over=over, snapshots=snapshots, layer=layer, confidence=confidence, **settings)
        points, told = table[table["kind"] == "point"], table[table["kind"] == "correlation"]
        cells = list(dict.fromkeys(points["cell"]))
        styles = marker_styles(cell_order(source, cells))
        shown_as = labels(cells, most=30)
        lines = {cell: _line(shown_as.get(cell, ALL), part) for cell, part in told.groupby("cell", sort=False)}
        ax = axes(ax, (5.6, 3.9 + 0.19 * (sum(1 + line.count("\n") for line in lines.values()) + 1)))
        many = len(points) > 150
        for cell in cells:
            own = points[points["cell"] == cell]
            ax.scatter(
                own["x"], own["y"], s=9 if many else 26, marker=styles[cell]["marker"], color=styles[cell]["color"],
                alpha=0.55 if many else 0.9, linewidths=0, label=lines[cell],
            )  # fmt: skip
        if "" in lines:
            ax.plot([], [], linestyle="none", label=lines[""])
        there = points[["x", "y"]].notna().all(axis=1)
        if not there.any():
            why = list(dict.fromkeys(text for text in points["missing"] if text))
            say(ax, "no repeat has both: " + "; ".join(why[:2]))
        ax.set_xlabel(table.attrs["titles"][0])
        ax.set_ylabel(table.attrs["titles"][1])
        figure_of(ax).legend(loc="outside lower left", title=_note(table, int((~there).sum())), alignment="left")
        return stamp(figure_of(ax), roots_in(source))


def _line(name: str, told: pd.DataFrame) -> str:
    """A line of the legend: name, r and ρ with their intervals, n."""
    parts = [name]
    for row in told.itertuples():
        if np.isfinite(row.r):
            bounds = f" [{_two(row.low)}, {_two(row.high)}]" if np.isfinite(row.low) else ""
            parts.append(f"{_SIGNS[row.method]} = {_two(row.r)}{bounds}")
    if len(parts) == 1:
        parts.append(f"no correlation: {told.iloc[0]['reason']}")
    return "\n".join(
        textwrap.wrap("  ".join([*parts, f"n = {told.iloc[0]['n']:g}"]), _LETTERS, subsequent_indent="   ")
    )


def _two(value: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def _note(table: pd.DataFrame, missing: int) -> str:
    over, level = table.attrs["over"], f"{100 * table.attrs['confidence']:g} %"
    told = table[table["kind"] == "correlation"]
    if over == "repeat":
        said = [f"r Pearson, ρ Spearman, {level} intervals; a point is a repeat"]
    else:
        said = [
            f"r Pearson, ρ Spearman within each repeat over its {over}s:",
            f"mean and {interval_words(['t_logit'], table.attrs['confidence'])} over repeats",
        ]
    if (told["cell"] == "").any() and over == "repeat":
        shared = table.loc[table["kind"] == "point", "seed"].duplicated().any()
        said.append(f"{ALL}: differences between algorithms count too" + (SHARED if shared else ""))
    if missing:
        said.append(f"{counted([missing], 'point')} without a value left out")
    return "\n".join(line for text in said for line in textwrap.wrap(text, _LETTERS))
