"""Which diagnostics move together over runs: rank correlations as a clustered matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.registry import find_metric
from waterjar.errors import WaterjarError
from waterjar.stats.correlation import cluster_order, correlate, correlation_matrix
from waterjar.view.figures._heatmap import hatch, write_in
from waterjar.view.results import Source, diagnosis_of, roots_in
from waterjar.view.style import axes, figure_of, house_style, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Correlation of diagnostics"
CAPTION = (
    "Rank correlation of every pair of diagnostics over runs; in brackets: not significant after correction; "
    "hatched: no value. Runs of one learner resemble each other, so a correlation may be one of learners rather "
    "than of runs."
)
NEEDS = ("continual|cost|drift|geometry|plasticity|rigidity",)
_NAMES = {
    "spearman": "Spearman's ρ", "pearson": "Pearson's r", "holm": "Holm", "benjamini_hochberg": "Benjamini-Hochberg"
}  # fmt: skip
METRICS = (
    "ad_restricted", "pd", "sfr_rel", "patched_accuracy", "masked_accuracy", "average_accuracy", "forgetting",
    "learning_accuracy", "learning_time", "dormant_units", "effective_rank", "feature_norm", "weight_magnitude",
    "weight_change_init", "capacity", "radius", "dimension", "cka", "probe_forgetting", "seconds", "flops",
)  # fmt: skip


def data(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    method: str = "spearman",
    correction: str = "benjamini_hochberg",
    alpha: float = 0.05,
    **settings: Any,
) -> pd.DataFrame:
    """One row per pair of metrics, x and y in the order they are drawn in: r, low, high, p_value, p_corrected,
    significant, n (runs that have both), n_missing, reason, and `method`.

    `metrics` are by default those of METRICS that differ between runs. Metrics that are differences to a baseline are
    taken without the baseline's own runs, which are 0 by definition. `settings` go to the families of the metrics.
    """
    needs = NEEDS if metrics is None else list(dict.fromkeys(find_metric(name).family for name in metrics))
    diagnosis = diagnosis_of(source, needs, settings)
    measured = [n for n in METRICS if find_metric(n).scalar in diagnosis.results.get(find_metric(n).family, ())]
    wanted = measured if metrics is None else list(dict.fromkeys(metrics))
    rows = diagnosis.table(wanted)
    relative = [name for name in wanted if find_metric(name).relative]
    if relative:
        rigidity = diagnosis.results["rigidity"]
        baselines = rigidity["cell"].values[rigidity["pattern"].values == "baseline"]
        rows = rows[~(rows["metric"].isin(relative) & rows["cell"].isin(baselines))]
    runs = rows.pivot(index=["cell", "seed"], columns="metric", values="value")
    runs = runs[[name for name in wanted if name in runs]]
    if metrics is None:
        runs = runs[[column for column in runs if runs[column].count() > 2 and runs[column].nunique() > 1]]
    if runs.shape[1] < 2:
        raise WaterjarError(
            f"two metrics that differ between runs are needed, and there are {runs.shape[1]} of them in {len(runs)} "
            "runs: correlations need three runs or more"
        )
    found = correlate(runs, method=method, correction=correction)
    order = cluster_order(found)
    found["significant"] = found["p_corrected"] <= alpha
    place = {name: i for i, name in enumerate(order)}
    turned = [place[x] > place[y] for x, y in zip(found["x"], found["y"], strict=True)]
    found.loc[turned, ["x", "y"]] = found.loc[turned, ["y", "x"]].to_numpy()
    found = found.sort_values(["x", "y"], key=lambda column: column.map(place), ignore_index=True)
    found.attrs = {"order": order, "runs": len(runs), "alpha": alpha, "method": method, "correction": correction}
    return found


def correlation_heatmap(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    method: str = "spearman",
    correction: str = "benjamini_hochberg",
    alpha: float = 0.05,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """Draw the correlations of diagnostics over runs; `method` is spearman or pearson."""
    with house_style():
        table = data(source, metrics=metrics, method=method, correction=correction, alpha=alpha, **settings)
        order: list[str] = table.attrs["order"]
        side = 0.42 * max(len(order), 4)
        ax = axes(ax, (side + 2.6, side + 1.9))
        matrix = correlation_matrix(table).reindex(index=order, columns=order).to_numpy()
        picture = ax.imshow(matrix, cmap="PuOr_r", vmin=-1.0, vmax=1.0, interpolation="nearest")
        hatch(ax, np.isnan(matrix))
        place = {name: i for i, name in enumerate(order)}
        texts = np.full(matrix.shape, "", object)
        for x, y, r, sure in zip(table["x"], table["y"], table["r"], table["significant"], strict=True):
            if np.isfinite(r):
                text = f"{r:.2f}" if sure else f"({r:.2f})"
                texts[place[x], place[y]] = texts[place[y], place[x]] = text
        write_in(ax, picture, texts, 6.5)
        names = [name.replace("_", " ") for name in order]
        ax.set_xticks(range(len(order)), names, rotation=90)
        ax.set_yticks(range(len(order)), names)
        ax.grid(False)
        figure = figure_of(ax)
        counts = sorted(set(table["n"]))
        n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        figure.colorbar(picture, ax=ax, label=f"{_NAMES.get(method, method)} over n = {n} repeats", shrink=0.8)
        ax.set_title(
            f"( ) not significant: p > {alpha:g}, {_NAMES.get(correction, correction)} over {len(table)} pairs",
            fontsize=7.5, fontweight="normal", color="#555555", loc="left",
        )  # fmt: skip
        return stamp(figure, roots_in(source))
