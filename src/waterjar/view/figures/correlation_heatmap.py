"""Which diagnostics move together over runs: rank correlations as a clustered matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterjar.diagnose.coupling import coupled
from waterjar.diagnose.registry import find_metric
from waterjar.errors import WaterjarError
from waterjar.stats.correlation import cluster_order, correlate
from waterjar.stats.power import detectable_correlation
from waterjar.view.figures._heatmap import hatch, write_in
from waterjar.view.figures._series import family_needs
from waterjar.view.results import Source, diagnosis_of, roots_in
from waterjar.view.style import axes, figure_of, house_style, legend_outside, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Correlation of diagnostics"
CAPTION = (
    "Rank correlation of every pair of diagnostics over runs, above the diagonal within learners; in brackets: not "
    "significant after correction. Hatched: the two share an input by arithmetic, and test nothing; grey: no value. "
    "Runs of one learner resemble each other: below the diagonal a correlation may be one of learners, above it is "
    "one of runs."
)
NEEDS = ("continual|cost|drift|geometry|plasticity|rigidity",)
_NAMES = {
    "spearman": "Spearman's ρ", "pearson": "Pearson's r", "holm": "Holm", "benjamini_hochberg": "Benjamini-Hochberg"
}  # fmt: skip
_NO_VALUE = "#d9d9d9"
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
    alpha: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per pair of metrics, x and y in the order they are drawn in: r, low, high, p_value, p_corrected,
    significant, n (runs that have both), n_missing, reason, `method`; coupled (they share an input by arithmetic, as
    their declarations say, and are not corrected for), detectable (the smallest r that n runs show with a power of
    80 %; NaN where none is), and r_within, low_within, high_within, p_within, n_within, reason_within among the runs of
    a learner.

    `metrics` are by default those of METRICS that differ between runs. Metrics that are differences to a baseline are
    taken without the baseline's own runs, which are 0 by definition. `alpha` is by default that of the declared tests.
    `settings` go to the families of the metrics.
    """
    diagnosis = diagnosis_of(source, family_needs(metrics, NEEDS), settings)
    alpha = diagnosis.analysis.test_settings.alpha if alpha is None else alpha
    measured = [n for n in METRICS if find_metric(n).scalar in diagnosis.results.get(find_metric(n).family, ())]
    wanted = measured if metrics is None else list(dict.fromkeys(map(diagnosis.name_of, metrics)))
    rows = diagnosis.table(wanted)
    relative = [name for name in wanted if diagnosis.declared(name).relative]
    if relative:
        rigidity = diagnosis.results["rigidity"]
        baselines = rigidity["cell_id"].values[rigidity["pattern"].values == "baseline"]
        rows = rows[~(rows["metric"].isin(relative) & rows["cell_id"].isin(baselines))]
    runs = rows.pivot(index=["cell_id", "seed"], columns="metric", values="value")
    runs = runs[[name for name in wanted if name in runs]]
    if metrics is None:
        runs = runs[[column for column in runs if runs[column].count() > 2 and runs[column].nunique() > 1]]
    if runs.shape[1] < 2:
        raise WaterjarError(
            f"two metrics that differ between runs are needed, and there are {runs.shape[1]} of them in {len(runs)} "
            "runs: correlations need three runs or more"
        )
    learners = runs.index.get_level_values("cell_id").tolist()
    found = correlate(runs, method=method, correction=correction, groups=learners, coupled=coupled)
    found["detectable"] = [detectable_correlation(n, method=method, alpha=alpha) for n in found["n"]]
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
    alpha: float | None = None,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """Draw the correlations of diagnostics over runs; `method` is spearman or pearson."""
    from matplotlib import colormaps  # noqa: PLC0415 - an extra
    from matplotlib.patches import Patch  # noqa: PLC0415

    with house_style():
        table = data(source, metrics=metrics, method=method, correction=correction, alpha=alpha, **settings)
        order: list[str] = table.attrs["order"]
        side = 0.42 * max(len(order), 4)
        ax = axes(ax, (max(side + 2.6, 6.0), side + 2.2))  # the note below needs its width
        matrix, texts, shared = _squares(table, order, table.attrs["alpha"])
        colours = colormaps["PuOr_r"].with_extremes(bad=_NO_VALUE)
        picture = ax.imshow(matrix, cmap=colours, vmin=-1.0, vmax=1.0, interpolation="nearest")
        dark = np.abs(np.nan_to_num(matrix)) > 0.6
        hatch(ax, shared & ~dark, "#666666")
        hatch(ax, shared & dark, "#ffffff")
        write_in(ax, picture, texts, 6.5, box=shared)
        names = [name.replace("_", " ") for name in order]
        ax.set_xticks(range(len(order)), names, rotation=90)
        ax.set_yticks(range(len(order)), names)
        ax.grid(False)
        figure = figure_of(ax)
        counts = sorted(set(table["n"]))
        n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        figure.colorbar(picture, ax=ax, label=f"{_NAMES.get(method, method)},\nn = {n} repeats", shrink=0.8)
        handles: dict[str, Any] = {}
        if shared.any():
            handles["the two share an input by arithmetic: not tested"] = Patch(
                facecolor="white", hatch="////", edgecolor="#777777", linewidth=0
            )
        if np.isnan(matrix).any():
            handles["no value"] = Patch(facecolor=_NO_VALUE)
        legend_outside(figure, handles, _note(table, method, correction, table.attrs["alpha"]))
        return stamp(figure, roots_in(source))


def _squares(
    table: pd.DataFrame, order: list[str], alpha: float
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.bool_]]:
    """(numbers, texts, which are coupled) by row and column: pooled below the diagonal, within learners above it."""
    place = {name: i for i, name in enumerate(order)}
    matrix = np.eye(len(order))
    texts, shared = np.full(matrix.shape, "", object), np.zeros(matrix.shape, bool)
    for line in table.itertuples():
        first, last = sorted((place[line.x], place[line.y]))
        pooled = (line.r, line.p_corrected)
        for at, (r, p) in (((last, first), pooled), ((first, last), (line.r_within, line.p_within_corrected))):
            matrix[at], shared[at] = r, line.coupled
            if np.isfinite(r):
                shown = f"{round(r, 2) + 0.0:.2f}"  # no minus before a zero
                texts[at] = shown if p <= alpha or line.coupled else f"({shown})"
    return matrix, texts, shared


def _note(table: pd.DataFrame, method: str, correction: str, alpha: float) -> str:
    """What stands where, what is tested, and what so many runs could show."""
    said = ["below the diagonal: over all repeats; above: within learners (repeated measures r)"]
    tested = int(table["p_corrected"].notna().sum())
    said.append(f"( ) not significant: p > {alpha:g}, {_NAMES.get(correction, correction)} over {tested} pairs")
    could = could_show(table)
    return "\n".join([*said, could] if could else said)


def could_show(table: pd.DataFrame) -> str:
    """What the fewest runs that a pair of `data` has could show, in words; empty where that is not known."""
    known = table[table["r"].notna()]
    if known.empty:
        return ""
    n, least, method = known.loc[known["n"].idxmin(), ["n", "detectable", "method"]]
    if np.isfinite(least):
        return f"n = {n} repeats could show a single |r| of {least:.3f} or more (power 80 %)"
    return f"n = {n} repeats: no r could be shown with so few runs" if method == "spearman" else ""
