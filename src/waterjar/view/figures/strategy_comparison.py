"""Strategies side by side: a metric per cell with its interval, and what a corrected test says of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from waterjar.diagnose.analysis import Tests, analysis_of
from waterjar.diagnose.baseline import default_baseline, find_baselines
from waterjar.diagnose.compare import compare_cells, main_metrics
from waterjar.diagnose.fitting import fitting
from waterjar.diagnose.over_seeds import cells_over_seeds, interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.registry import metrics as all_metrics
from waterjar.diagnose.settings import parse
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError, given_as
from waterjar.run.study import Study
from waterjar.view.curves import say
from waterjar.view.figures._rows import draw_estimates, name_rows
from waterjar.view.figures._series import axis_title, family_needs
from waterjar.view.results import Source, cell_order, diagnosis_of, roots_in, study_of
from waterjar.view.short_names import short
from waterjar.view.style import canvas, counted, drawn, foot_note, house_style, marker_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Strategies compared"
CAPTION = (
    "The mean of each strategy with its interval, small markers are seeds; beside each row stands the corrected p "
    "of its difference to the baseline. A bracket and stars mark a significant difference; without them, the runs "
    "do not settle it."
)
NEEDS = ("continual|rigidity",)
METRICS = ("patched_accuracy", "masked_accuracy", "average_accuracy")
TASKS = ("average_accuracy", "forgetting", "learning_accuracy")
"""Where there is no shortcut."""
LEVELS = (0.05, 0.01, 0.001)
CORRECTIONS = {"holm": "Holm", "benjamini_hochberg": "Benjamini-Hochberg"}


def stars(p_corrected: float, smallest_exact_p: float, alpha: float = 0.05) -> str:
    """One star where the corrected p is at most alpha, a second and third at 0.01 and 0.001, if seeds can carry them.

    A t test of three pairs may give p < 0.001, but only by trusting its distribution: the exact test of so few cannot
    go below 0.25. So beyond the first, a star needs a design whose exact test could reach its level.

    >>> stars(0.0005, 0.25), stars(0.0005, 0.0001), stars(0.2, 0.0001)
    ('*', '***', '')
    """
    if not p_corrected <= alpha:
        return ""
    return "*" * (1 + sum(p_corrected <= level and smallest_exact_p <= level for level in LEVELS[1:]))


def data(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    baseline: str | None = None,
    paired: bool | None = None,
    test: str | None = None,
    correction: str | None = None,
    alpha: float | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """One row per metric, cell and seed: metric, cell, seed, value, missing (why, where it is NaN), and what
    `diagnose.compare` says of the cell: mean, low, high, interval (how they were made), n, is_baseline, difference,
    p_value, p_corrected, significant, stars, test, correction, family_size, smallest_exact_p, baseline, reason.

    `metrics` are by default those of METRICS that were measured, of TASKS without a shortcut; `baseline` is a scenario
    or the name of a cell. What is not said of baseline and tests is as in the diagnosis, or as the study declares it. A
    study without that baseline, or that declares no tests, keeps its means. `settings` go to the families of the
    metrics.
    """
    if metrics is not None and not metrics:
        raise WaterjarError(f"metrics is empty: expected some of {', '.join(METRICS)}")
    study = fitting(study_of(source, "strategy_comparison compares runs"))
    if not study.entries:
        raise WaterjarError(f"{study.path} holds no runs: there is nothing to compare")
    analysis = source.analysis if isinstance(source, Diagnosis) else analysis_of(study)
    chosen = baseline or analysis.baseline_name or default_baseline(study)[0]
    told = {"test": test, "paired": paired, "correction": correction, "alpha": alpha}
    given = {key: value for key, value in told.items() if value is not None}
    how = Tests.model_validate(parse(Tests, {**analysis.test_settings.model_dump(), **given}, "tests"))
    needs = family_needs(metrics, NEEDS)
    known = all_metrics()
    if any(known[name].relative for name in metrics or () if name in known):  # differences to the same baseline
        settings = {"rigidity.baseline": chosen, **settings}
    if metrics is None and isinstance(source, Study):  # all that `compare` would test counts for the correction
        source = diagnose(source)
    diagnosis = diagnosis_of(source, needs, settings)
    names = list(dict.fromkeys(map(diagnosis.name_of, metrics or _measured(diagnosis))))
    values = diagnosis.table(names)
    bases, notes = find_baselines(study, chosen, analysis.rule)
    if analysis.tests is False and not given:
        compared = _means(diagnosis, values, how.alpha, "none is declared")
    elif not any(bases.values()):
        why = f"{next(iter(notes.values()), 'no baseline')}: name one with {given_as('baseline', 'NAME')}"
        compared = _means(diagnosis, values, how.alpha, why)
    else:
        # corrected over all that `compare` would test, so that one study has one verdict; those named, over themselves
        every = names if metrics else list(dict.fromkeys([*main_metrics(diagnosis, how), *names]))
        compared = compare_cells(diagnosis, every, baseline=chosen, tests=how)
        compared = compared[compared["metric"].isin(names)].reset_index(drop=True)
    compared["stars"] = [
        stars(p, least, how.alpha) if clear else ""
        for p, least, clear in zip(
            *(compared[key] for key in ("p_corrected", "smallest_exact_p", "significant")), strict=True
        )
    ]
    kept = [
        "metric", "group", "mean", "low", "high", "interval", "n", "is_baseline", "difference", "p_value",
        "p_corrected", "significant", "stars", "test", "correction", "family_size", "smallest_exact_p",
        "baseline", "reason",
    ]  # fmt: skip
    table = values[["metric", "cell", "seed", "value", "reason"]].rename(columns={"reason": "missing"})
    found = table.merge(compared[kept].rename(columns={"group": "cell"}), on=["metric", "cell"], how="left")
    found["missing"] = found["missing"].replace("present", "")
    symbols = {name: diagnosis.declared(name).symbol for name in names}
    titles = {name: axis_title(diagnosis, name, name=symbol) for name, symbol in symbols.items()}
    found.attrs = {"alpha": how.alpha, "titles": titles}
    return found


def _measured(diagnosis: Diagnosis) -> list[str]:
    usual = METRICS if "rigidity" in diagnosis.results else TASKS
    names = [n for n in usual if find_metric(n).scalar in diagnosis.results.get(find_metric(n).family, {})]
    if not names:
        raise WaterjarError(f"none of {', '.join(METRICS)} was measured: name others with {given_as('metrics')}")
    return names


def _means(diagnosis: Diagnosis, values: pd.DataFrame, alpha: float, why: str) -> pd.DataFrame:
    """The columns of a comparison of cells that are not compared."""
    none = dict.fromkeys(("difference", "p_value", "p_corrected", "smallest_exact_p"), np.nan)
    about = {"test": "", "correction": "", "family_size": 0, "baseline": "", "reason": why}
    means = cells_over_seeds(values, 1 - alpha, diagnosis.declared).rename(columns={"cell": "group"})
    return means.assign(is_baseline=False, significant=False, **about, **none)


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
    with house_style():
        table = data(
            source, metrics=metrics, baseline=baseline, paired=paired, test=test, correction=correction, alpha=alpha,
            **settings,
        )  # fmt: skip
        cells, names = (list(dict.fromkeys(table[column])) for column in ("cell", "metric"))
        of_all = marker_styles(cell_order(source, cells))
        styles = {cell: of_all[cell] for cell in cells}
        figure = canvas(figure, (3.2 * len(names) + 1.2, 0.5 * max(len(cells), 2) + 1.6))
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for ax, metric in zip(panels, names, strict=True):
            part = table[table["metric"] == metric]
            draw_estimates(ax, part, styles)
            ax.set_xlabel(table.attrs["titles"][metric])
            if part["mean"].notna().any():
                _significance(ax, part.drop_duplicates("cell").set_index("cell"), cells)
            else:
                why = part.loc[part["missing"] != "", "missing"].value_counts()
                say(ax, "; ".join(f"{n} {reason}" for reason, n in why.items()))
        name_rows(panels[0], cells)
        foot_note(figure, _note(table))
        return stamp(figure, roots_in(source))


def _significance(ax: Axes, rows: pd.DataFrame, cells: list[str]) -> None:
    """Corrected p and stars at the right of every row; a bracket from the baseline to every row that differs."""
    left, right = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if left <= tick <= right]
    step = (right - left) * 0.045
    reach = 0
    for i, cell in enumerate(cells):
        line = rows.loc[cell]
        if not line["stars"] or line["baseline"] not in rows.index:
            continue
        other = cells.index(line["baseline"])
        x = right + step * (reach + 0.5)
        reach += 1
        ax.plot([x - step / 3, x, x, x - step / 3], [other, other, i, i], color="black", linewidth=0.9, gid="bracket")
    edge = right + step * (reach + 0.5)
    for i, cell in enumerate(cells):
        p = rows.loc[cell, "p_corrected"]
        text = "baseline" if rows.loc[cell, "is_baseline"] else "no p" if rows.loc[cell, "baseline"] else ""
        if np.isfinite(p):
            text = f"p = {p:.2g} {rows.loc[cell, 'stars']}".rstrip()
        ax.text(edge, i, text, va="center", ha="left", fontsize=7, color="#333333")
    ax.set_xlim(left, edge + (right - left) * 0.32)
    ax.set_xticks(ticks)


def _note(table: pd.DataFrame) -> str:
    level = interval_words(table["interval"], 1 - table.attrs["alpha"])
    said = [f"mean and {level}, n = {counted(table['n'], 'seed')}"]
    tested = table[(table["test"] != "") & table["p_corrected"].notna()]
    if len(tested):
        first = tested.iloc[0]
        kinds = "/".join(dict.fromkeys(tested["test"].str.replace("_", " ")))
        said.append(f"{kinds} test, {CORRECTIONS[first['correction']]} over {first['family_size']:g} tests")
        least = tested["smallest_exact_p"].min()
        said.append(f"* p ≤ {table.attrs['alpha']:g}; with so few seeds an exact test cannot go below p = {least:.2g}")
    else:
        reason = next((text for text in table["reason"] if text), "nothing to test")
        said.append(f"no test: {drawn(short([reason], 110)[reason])}")
    return "; ".join(said[:2]) + "".join(f"\n{more}" for more in said[2:])
