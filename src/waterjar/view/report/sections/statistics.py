"""Learners against the baseline, with corrected p and effect sizes; and which diagnostics go together."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from waterjar.diagnose.over_seeds import interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.stats.effects import effect_words
from waterjar.view import figures
from waterjar.view.figures.correlation_heatmap import could_show
from waterjar.view.numbers import counted, estimate, label, no_width, number, panel_title, size_of
from waterjar.view.report.blocks import Block, Chart, Table, Text
from waterjar.view.report.charts.estimates import estimates_panel
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.model import Model

TITLE = "Statistics"
ORDER = 80


def blocks(model: Model) -> list[Block]:
    """Learners compared, as a chart and a table, and correlations; nothing of one learner with too few runs."""
    tested = model.diagnosis.analysis.tests is not False
    frame = model.figure_data("strategy_comparison") if len(model.study.cells) > 1 else pd.DataFrame()
    correlations = _correlation(model) if tested else []
    if frame.empty:
        return [*(_table(model) if len(model.compared[0]) else []), *correlations]
    panels = []
    for metric, part in frame.groupby("metric", sort=False):
        cells = part.drop_duplicates("cell")
        notes = {line.cell: _said_of(line) for line in cells.itertuples()}
        hollow = cells.loc[~(cells["significant"] | cells["is_baseline"]), "cell"].tolist() if tested else []
        title = panel_title(find_metric(str(metric)))
        panels.append(estimates_panel(part, model.keys, title=title, notes=notes, hollow=hollow, zero=False))
    level = interval_words(frame["interval"], 1 - frame.attrs["alpha"])
    caption = f"A dot is a seed, the larger marker the mean with its {level}"
    tests = counted(int(frame["family_size"].max()), "test")
    against = f"; p is that of the difference to the baseline corrected over {tests}. Filled where it is "
    chart = Chart(
        name="strategy_comparison",
        title=figures.describe("strategy_comparison").title,
        panels=tuple(panels),
        frame=frame,
        caption=f"{caption}{against}significant." if tested else f"{caption}.",
        alt=_alt(frame) if tested else "Means with intervals per learner and metric, without tests.",
        figure="strategy_comparison",
    )
    if not tested:
        said = "No tests were made, of differences or of correlations: the study declares none (analysis.tests: false)."
        return [Text(said), chart]
    return [chart, *_table(model), *correlations]


def _said_of(line: Any) -> str:
    if math.isnan(line.mean):
        return "no value"
    if math.isnan(line.p_corrected):
        return "baseline" if line.is_baseline else ""
    return f"p = {number(line.p_corrected)}{line.stars}"


def _alt(frame: pd.DataFrame) -> str:
    once = frame.drop_duplicates(["metric", "cell"])
    clear = once[once["significant"]]
    if clear.empty:
        return "Means with intervals per learner and metric. No difference to the baseline is significant."
    told = ", ".join(f"{line.cell} in {line.metric} (p = {line.p_corrected:.2g})" for line in clear.itertuples())
    return f"Means with intervals per learner and metric. Significant after correction: {told}."


def _table(model: Model) -> list[Block]:
    table, why = model.compared
    if why:
        return [Text(f"Not compared: {why}.")]
    how = model.diagnosis.analysis.test_settings
    rows = tuple(_row(line, model) for line in table.to_dict("records"))
    columns = ("metric", "learner", "mean", "difference", "p corrected", "effect size", "P(better)")
    tests = table[(table["test"] != "") & (table["n_compared"] > 0)]
    said = "; ".join(dict.fromkeys(reason for reason in table["reason"] if reason))
    if len(tests):
        one = tests.iloc[0]
        pairs = ", pairs by seed" if how.paired else ""
        level = interval_words(table["interval"], 1 - how.alpha)
        said = (
            f"In brackets: of means the {level}, of differences the {100 * (1 - how.alpha):g} % t interval. "
            f"Test: {one['test'].replace('_', ' ')}{pairs}; {one['correction'].replace('_', ' ')} over "
            f"{counted(one['family_size'], 'test')} (those of `waterjar compare`), intervals not corrected; "
            f"* where p corrected is {how.alpha:g} or less. "
            f"With so few seeds an exact test could not give a p below {number(tests['smallest_exact_p'].min())}"
            + ("; a t test may, because it assumes the distribution" if one["test"].endswith(("_t", "welch")) else "")
            + ". n beside a difference counts its pairs, where these are fewer than the seeds of the mean. P(better): "
            f"how often a seed of the learner is better than its partner. {effect_words(tests['effect_name'])}"
        )
    return [Table("comparison", "Comparison with the baseline", columns, rows, table, said, (2, 3, 4, 5, 6))]


def _row(line: dict[str, Any], model: Model) -> tuple[str, ...]:
    metric = model.diagnosis.declared(str(line["metric"]))
    scale = max(size_of(metric), abs(line["mean"]) if line["n"] else 0.0)
    mean = estimate(
        line["mean"], line["low"], line["high"], int(line["n"]), scale=scale, between_seeds=metric.between_seeds
    )
    name = label(metric)
    if line["missing"]:
        mean += f"; missing: {line['missing']}" if line["n"] else f"\n{line['missing']}"
    if line["is_baseline"]:
        return name, f"{line['group']} (baseline)", mean, "–", "–", "–", "–"
    return (
        name,
        line["group"],
        mean,
        _difference(line, scale),
        f"{number(line['p_corrected'])}{' *' * line['significant']}\nuncorrected {number(line['p_value'])}",
        estimate(line["effect_size"], line["effect_low"], line["effect_high"], scale=1.0) + _named(line),
        estimate(line["improvement"], line["improvement_low"], line["improvement_high"], scale=1.0),
    )


def _difference(line: dict[str, Any], scale: float) -> str:
    """The difference; how many pairs it rests on is said where these are not all seeds of the mean."""
    bounds = line["difference"], line["difference_low"], line["difference_high"]
    n = int(line["n_compared"])
    alike = no_width(line["difference_low"], line["difference_high"], scale)
    return estimate(*bounds, n if n != int(line["n"]) or alike else None, scale=scale)


def _named(line: dict[str, Any]) -> str:
    return "" if math.isnan(line["effect_size"]) else f" {line['effect_name']}"


def _correlation(model: Model) -> list[Block]:
    frame = model.figure_data("correlation_heatmap")
    if frame.empty:
        return []
    about = figures.describe("correlation_heatmap")
    names = list(frame.attrs.get("order") or dict.fromkeys([*frame["x"], *frame["y"]]))
    pairs = {frozenset((line.x, line.y)): line for line in frame.itertuples()}
    values, texts, hover, hatched = [], [], [], []
    for i, one in enumerate(names):
        numbers: list[float] = []
        words: list[str] = []
        told: list[str] = []
        for j, other in enumerate(names):
            pair = pairs.get(frozenset((one, other)))
            numbers.append(1.0 if i == j else _shown(pair, j > i)[0])
            words.append("" if i == j or pair is None else _written(*_shown(pair, j > i), frame.attrs["alpha"]))
            told.append("itself" if i == j else _told(pair))
            hatched += [(i, j)] if i != j and pair is not None and pair.coupled else []
        values.append(numbers)
        texts.append(words)
        hover.append(told)
    shown = [label(find_metric(name)) for name in names]
    panel = matrix_panel(
        values, shown, shown, title="", x="", y="", texts=texts, hover=hover, limits=(-1.0, 1.0), diverging=True,
        bar="correlation", height=140 + (36 if len(names) < 12 else 26) * len(names), hatched=hatched,
    )  # fmt: skip
    strong = frame[frame["significant"]]
    said = ", ".join(f"{line.x} and {line.y} {line.r:.2f}" for line in strong.itertuples()) or "none"
    return [
        Chart(
            name="correlation_heatmap",
            title=about.title,
            panels=(panel,),
            frame=frame,
            caption=_caption(frame),
            alt=f"A grid of correlations between diagnostics. Significant after correction: {said}.",
            wide=True,
            figure="correlation_heatmap",
        )
    ]


def _caption(frame: pd.DataFrame) -> str:
    tested = int(frame["p_corrected"].notna().sum())
    could = could_show(frame)
    return (
        f"Below the diagonal Spearman's ρ of every pair of diagnostics over up to {int(frame['n'].max())} runs, above "
        "it the correlation within learners (repeated measures): runs of one learner resemble each other, and the "
        "first may be that of learners rather than of runs. Those that move together stand together. A number stands "
        f"where a correlation is significant after correction over {tested} pairs; the others are shown by colour "
        "alone, and when pointed at. Hatched pairs share an input by arithmetic, such as a difference and what it is "
        f"taken from: they are not tested.{f' {could}.' if could else ''}"
    )


def _shown(pair: Any, within: bool) -> tuple[float, float]:
    """(r, corrected p) of a pair, pooled or within learners; NaN where there is none."""
    if pair is None:
        return math.nan, math.nan
    return (pair.r_within, pair.p_within_corrected) if within else (pair.r, pair.p_corrected)


def _written(r: float, p: float, alpha: float) -> str:
    return f"{round(r, 2) + 0.0:.2f}".replace("-", "−") if p <= alpha else ""


def _told(pair: Any) -> str:
    if pair is None or math.isnan(pair.r):
        return "no value"
    test = "share an input, not tested" if pair.coupled else f"p corrected = {pair.p_corrected:.3g}"
    told = f"ρ = {pair.r:.3f} [{pair.low:.3f}, {pair.high:.3f}], n = {pair.n}, {test}"
    if math.isnan(pair.r_within):
        return f"{told}; within learners: {pair.reason_within}"
    return f"{told}; within learners r = {pair.r_within:.3f} [{pair.low_within:.3f}, {pair.high_within:.3f}]"
