"""Made from the figures by `python -m waterjar.front.stubs`; a test holds it true. Edit those."""

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterjar.front.sources import Source as _Source

Source = _Source | xr.Dataset

def contributions(
    source: Source,
    *,
    absence: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw contributions of streams with intervals, and interactions of pairs, a row per learner."""

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

def cost_accuracy(
    source: Source,
    *,
    cost: str = "seconds",
    accuracy: str | None = None,
    confidence: float | None = None,
    ax: Axes | None = None,
    **settings: Any,
) -> Figure:
    """Draw accuracy over cost, one marker per cell; `settings` go to the families."""

def drift_matrix(
    source: Source,
    *,
    measure: str = "cka",
    layer: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the similarity of every snapshot with every other, mean over repeats, one panel per cell."""

def emergence(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw three panels per learner: accuracies, the emergence ratio, and the end with its controls."""

def eri_dynamics(source: Source, *, band: str = "interval", figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw accuracies per learner, and AD, PD and SFR over effective epochs; `settings` go to `rigidity.measure`."""

def eri_summary(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw AD, PD and SFR_rel of every learner; `settings` go to `rigidity.measure`."""

def fingerprint_map(
    source: Source,
    *,
    seed: int | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw fingerprints in the plane of their first two principal components, a panel per learner."""

def forgotten_examples(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw sorted examples, a line per learner: forgetting events, and the epoch of learning."""

def geometry_stack(
    source: Source,
    *,
    dataset: str | None = None,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the geometry of one layer (the last one by default); `settings` go to `geometry.measure`."""

def learning_curves(
    source: Source,
    *,
    variable: str | None = None,
    group: str | None = None,
    eval_sets: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    over: str = "total_epoch",
    band: str = "range",
    confidence: float | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw `variable` over `over`; the line is the mean over repeats, the band their range (or interval, std)."""

def metric_boxes(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    snapshots: str = "mean",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw a panel per metric with a box per algorithm; `settings` go to the families of the metrics."""

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

def metric_traces(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    layer: str | None = None,
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw metrics over training, a panel each; `band` is interval, std or range, `settings` go to the families."""

def plasticity_stack(
    source: Source,
    *,
    metrics: Sequence[str] = ...,
    layer: str | None = None,
    over: str = "total_epoch",
    band: str = "interval",
    confidence: float | None = None,
    dataset: str | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw plasticity metrics over training, of one layer (the last one by default); `settings` go to `measure`."""

def routing(
    source: Source,
    *,
    sample: int | None = None,
    seed: int | None = None,
    by: str = "route",
    at: str = "end",
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw the routing weights of every stream, a row of panels per learner."""

def shift_severity(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw accuracy against severity, a panel per shift, and accuracy under attacks; rows of panels per learner."""

def strategy_comparison(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    baseline: str | None = None,
    paired: bool | None = None,
    test: str | None = None,
    correction: str | None = None,
    alpha: float | None = None,
    figure: Figure | None = None,
    **settings: Any,
) -> Figure:
    """Draw one panel per metric, a row per cell; `settings` go to the families of the metrics."""

def stream_failure(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw what is left of accuracy when streams fail, a panel per learner."""

def task_matrix(
    source: Source,
    *,
    variable: str | None = None,
    eval_sets: Sequence[str] | None = None,
    band: str = "interval",
    confidence: float | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw accuracy by eval task and train task, one panel per cell, all in one colour scale from 0 to 1."""

def tau_heatmap(source: Source, *, ax: Axes | None = None, **settings: Any) -> Figure:
    """Draw AD over the grid of thresholds; `settings` go to `rigidity.measure` (thresholds=[...] for another grid)."""

def __getattr__(name: str) -> Callable[..., Figure]: ...
